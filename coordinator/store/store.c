/* store.c - the database as a whole: its directory, its schema, its cluster, its terms, and copies
 * of it as it is at one moment, while it goes on working.
 *
 * A copy says when it was made: a store that is restored from it has to know its age
 * (restoring.c). */
#include "coordinator/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "coordinator/store/internal.h"

static const char *const schema_steps[] = {
    "CREATE TABLE cluster (id INTEGER NOT NULL, term INTEGER NOT NULL);"
    "CREATE TABLE jobs (number INTEGER PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL,"
    " user TEXT NOT NULL, text TEXT NOT NULL, given TEXT NOT NULL, devices_min INTEGER NOT NULL,"
    " devices_max INTEGER NOT NULL, devices_needed INTEGER NOT NULL, kind TEXT NOT NULL,"
    " state TEXT NOT NULL, reason TEXT NOT NULL, words TEXT NOT NULL, epoch INTEGER NOT NULL,"
    " plan TEXT NOT NULL, holding INTEGER NOT NULL, step INTEGER NOT NULL,"
    " steps INTEGER NOT NULL, loss REAL, tokens_per_s REAL,"
    " submitted_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX jobs_key ON jobs (user, key) WHERE key != '';"
    "CREATE TABLE ranks (job INTEGER NOT NULL, rank INTEGER NOT NULL, worker TEXT NOT NULL,"
    " instance INTEGER NOT NULL, device INTEGER NOT NULL, state TEXT NOT NULL,"
    " status INTEGER NOT NULL, PRIMARY KEY (job, rank)) WITHOUT ROWID;"
    "CREATE TABLE plans (job INTEGER NOT NULL, epoch INTEGER NOT NULL, id TEXT NOT NULL,"
    " json TEXT NOT NULL, candidates TEXT NOT NULL, hashes BLOB NOT NULL,"
    " PRIMARY KEY (job, epoch)) WITHOUT ROWID;"
    "CREATE TABLE workers (name TEXT PRIMARY KEY, instance INTEGER NOT NULL, past BLOB NOT NULL,"
    " report BLOB NOT NULL, dead INTEGER NOT NULL, lost_ms INTEGER NOT NULL,"
    " draining INTEGER NOT NULL, drain_reason TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE events (revision INTEGER PRIMARY KEY, unix_ms INTEGER NOT NULL,"
    " job TEXT NOT NULL, node TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,"
    " json TEXT NOT NULL);"
    "CREATE INDEX events_job ON events (job, revision);",

    "ALTER TABLE jobs ADD COLUMN held TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN pauses INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN resumes INTEGER NOT NULL DEFAULT 0;",

    "ALTER TABLE jobs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN restarts_max INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN fault_step INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN again TEXT NOT NULL DEFAULT '';",

    "CREATE TABLE data_files (job INTEGER NOT NULL, place INTEGER NOT NULL, node TEXT NOT NULL,"
    " epoch INTEGER NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL, hash INTEGER NOT NULL,"
    " PRIMARY KEY (job, place)) WITHOUT ROWID;",

    "CREATE TABLE tokens (id TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL,"
    " hash BLOB NOT NULL, issued_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,"
    " uses_left INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE credentials (role TEXT NOT NULL, name TEXT NOT NULL, hash BLOB NOT NULL,"
    " issued_ms INTEGER NOT NULL, revoked_ms INTEGER NOT NULL,"
    " PRIMARY KEY (role, name)) WITHOUT ROWID;",

    "CREATE TABLE checkpoints (job INTEGER NOT NULL, step INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL, folder TEXT NOT NULL, bytes INTEGER NOT NULL,"
    " unix_ms INTEGER NOT NULL, PRIMARY KEY (job, step, epoch)) WITHOUT ROWID;"
    "CREATE TABLE kept_values (job TEXT NOT NULL, epoch INTEGER NOT NULL, key TEXT NOT NULL,"
    " value BLOB NOT NULL, PRIMARY KEY (job, epoch, key)) WITHOUT ROWID;",

    "ALTER TABLE jobs ADD COLUMN replans INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE ranks ADD COLUMN role TEXT NOT NULL DEFAULT 'trains';",

    "ALTER TABLE checkpoints ADD COLUMN damaged INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN saves INTEGER NOT NULL DEFAULT 0;",

    "ALTER TABLE plans ADD COLUMN compute_s BLOB;",

    "ALTER TABLE jobs RENAME COLUMN fault_step TO reached_step;"
    "ALTER TABLE jobs ADD COLUMN faults INTEGER NOT NULL DEFAULT 0;",

    "ALTER TABLE jobs ADD COLUMN releases INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN named TEXT NOT NULL DEFAULT '';",

    "ALTER TABLE cluster ADD COLUMN copied_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE cluster ADD COLUMN jobs_from INTEGER NOT NULL DEFAULT 0;",

    "ALTER TABLE jobs ADD COLUMN finished INTEGER NOT NULL DEFAULT 0;",

    "ALTER TABLE jobs ADD COLUMN run_tokens INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN run_s REAL NOT NULL DEFAULT 0;",

    "CREATE TABLE steps (job INTEGER NOT NULL, step INTEGER NOT NULL, epoch INTEGER NOT NULL,"
    " loss REAL, gradient_norm REAL, time_s REAL NOT NULL, tokens INTEGER NOT NULL,"
    " end_ms INTEGER NOT NULL, PRIMARY KEY (job, step)) WITHOUT ROWID;"
    "CREATE TABLE evaluations (job INTEGER NOT NULL, step INTEGER NOT NULL, loss REAL,"
    " PRIMARY KEY (job, step)) WITHOUT ROWID;"
    "CREATE TABLE samples (job INTEGER PRIMARY KEY, step INTEGER NOT NULL, text BLOB NOT NULL);"
    "CREATE TABLE times (job INTEGER NOT NULL, block TEXT NOT NULL, class TEXT NOT NULL,"
    " epoch INTEGER NOT NULL, count INTEGER NOT NULL, predicted_s REAL NOT NULL,"
    " measured_s REAL NOT NULL, median_s REAL NOT NULL, median_ratio REAL NOT NULL,"
    " PRIMARY KEY (job, block, class)) WITHOUT ROWID;"
    "CREATE TABLE removed (number INTEGER PRIMARY KEY, state TEXT NOT NULL,"
    " ended_ms INTEGER NOT NULL);"
    "CREATE INDEX jobs_ended ON jobs (ended_ms, number) WHERE ended_ms != 0;"
    "CREATE INDEX events_passing ON events (revision) WHERE job = '' OR kind = 'step';"
    "CREATE INDEX events_staying ON events (job, revision) WHERE kind != 'step';",

    "ALTER TABLE jobs ADD COLUMN origin TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN origin_step INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN origin_samples INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN origin_weights INTEGER NOT NULL DEFAULT 0;",

    "ALTER TABLE jobs ADD COLUMN saves_in TEXT NOT NULL DEFAULT '';",

    "ALTER TABLE evaluations ADD COLUMN targets INTEGER NOT NULL DEFAULT 0;",
};
#define SCHEMA_STEPS (sizeof schema_steps / sizeof *schema_steps)

static uint64_t schema_version(struct sql *sql)
{
    sqlite3_stmt *statement = sql_bind(sql, "PRAGMA user_version", "");
    uint64_t found = sql_step(sql, statement) ? sql_number(statement, 0) : 0;
    if (statement)
        sql_leave(statement);
    return found;
}

static void schema_migrate(struct sql *sql)
{
    uint64_t found = schema_version(sql);
    if (found > SCHEMA_STEPS)
        sql_fail(sql, -EPROTO,
                 "a newer release has written it: its schema is %llu, this release knows %zu",
                 (unsigned long long)found, SCHEMA_STEPS);
    for (size_t i = found; i < SCHEMA_STEPS && sql->rc == 0; i++) {
        char mark[64];
        snprintf(mark, sizeof mark, "PRAGMA user_version = %zu", i + 1);
        sql_script(sql, "BEGIN IMMEDIATE");
        sql_script(sql, schema_steps[i]);
        sql_script(sql, mark);
        sql_script(sql, "COMMIT");
    }
}

#define FILE_NAME "store.db"
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xff534d42
#endif
#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xfe534d42
#endif

/* SQLite's locks and write-ahead log are not safe on network file systems. */
static int store_check_local(const char *path, struct error *err)
{
    struct statfs status;
    if (statfs(path, &status) < 0)
        return error_set(err, -errno, "%s", strerror(errno));
    switch ((unsigned long)status.f_type) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case CEPH_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
    case V9FS_MAGIC:
        return error_set(err, -ENOTSUP,
                         "it is on a network file system, on which the store is not safe; use a "
                         "local disk");
    default:
        return 0;
    }
}

/* One process at a time: the lock is taken by the first transaction and kept until the end. */
static void store_configure(struct sql *sql)
{
    sql_script(sql, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                    "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;");
    sql_script(sql, "BEGIN EXCLUSIVE; COMMIT");
    if (sql->rc == -EBUSY) {
        sql->rc = 0;
        sql_fail(sql, -EBUSY, "another process has it open; is a gimbal-coordinator running?");
    }
    sqlite3_stmt *statement = sql_bind(sql, "PRAGMA quick_check(1)", "");
    if (sql_step(sql, statement) && strcmp(sql_text(statement, 0), "ok") != 0)
        sql_fail(sql, -EPROTO, "it is damaged: %s; put a backup in its place",
                 sql_text(statement, 0));
    if (statement)
        sql_leave(statement);
}

/* Read the number of the cluster, which is drawn when the store is created. */
static void store_identify(struct store *store)
{
    struct sql *sql = &store->sql;
    sqlite3_stmt *statement = sql_bind(sql, "SELECT id FROM cluster", "");
    if (sql_step(sql, statement)) {
        store->cluster = sql_number(statement, 0);
        sql_leave(statement);
    }
    if (store->cluster != 0 || sql->rc != 0)
        return;
    while (store->cluster == 0 && sql->rc == 0)
        if (getrandom(&store->cluster, sizeof store->cluster, 0) < 0)
            sql_fail(sql, -errno, "getrandom: %s", strerror(errno));
    sql_put(sql, "INSERT INTO cluster (id, term) VALUES (?, 0)", "u", store->cluster);
    sql_commit(sql);
}

char *store_path(const char *directory)
{
    return xasprintf("%s/%s", directory, FILE_NAME);
}

/* SQLite would say no more than that the file cannot be opened. */
static int store_check_writable(const char *directory, struct error *err)
{
    if (faccessat(AT_FDCWD, directory, W_OK, AT_EACCESS) == 0)
        return 0;
    return error_set(err, -errno, "nothing can be written into its folder: %s", strerror(errno));
}

int store_open(const char *directory, struct store **out, struct error *err)
{
    struct store *store = xcalloc(1, sizeof *store);
    char *path = store_path(directory);
    mode_t mask = umask(077);
    int rc = folder_make(directory, err);
    if (rc == 0)
        rc = store_check_local(directory, err);
    if (rc == 0)
        rc = store_check_writable(directory, err);
    if (rc == 0)
        rc = sql_open(&store->sql, path, err);
    if (rc == 0) {
        store_configure(&store->sql);
        schema_migrate(&store->sql);
        store_identify(store);
        room_open(store);
        rc = sql_failed(&store->sql, err);
    }
    umask(mask);
    if (rc < 0) {
        error_prefix(err, rc, "store %s", path);
        store_close(store);
        store = NULL;
    }
    free(path);
    if (rc == 0)
        *out = store;
    return rc;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    sql_close(&store->sql);
    room_close(store);
    free(store);
}

uint64_t store_cluster(const struct store *store)
{
    return store->cluster;
}

int store_begin_term(struct store *store, uint64_t *term, struct error *err)
{
    struct sql *sql = &store->sql;
    sql_put(sql, "UPDATE cluster SET term = term + 1", "");
    sqlite3_stmt *statement = sql_bind(sql, "SELECT term FROM cluster", "");
    uint64_t begun = sql_step(sql, statement) ? sql_number(statement, 0) : 0;
    if (statement)
        sql_leave(statement);
    sql_commit(sql);
    int rc = sql_failed(sql, err);
    if (rc == 0)
        *term = begun;
    return rc < 0 ? error_prefix(err, rc, "begin a term") : 0;
}

int store_commit(struct store *store, struct error *err)
{
    bool any = store->sql.inside;
    double began_s = clock_s();
    sql_commit(&store->sql);
    if (any)
        histogram_add(&store->commit_ns, (uint64_t)(1e9 * (clock_s() - began_s)));
    room_after_commit(store);
    return sql_failed(&store->sql, err);
}

bool store_changed(const struct store *store)
{
    return store->sql.inside;
}

const struct histogram *store_commit_ns(const struct store *store)
{
    return &store->commit_ns;
}

int store_copy(struct store *store, uint64_t now_ms, struct store_copy *out, struct error *err)
{
    struct sql *sql = &store->sql;
    sqlite3_int64 size = 0;
    sql_put(sql, "UPDATE cluster SET copied_ms = ?", "u", now_ms);
    sql_commit(sql);
    int rc = sql_failed(sql, err);
    if (rc < 0)
        return error_prefix(err, rc, "back up");
    unsigned char *bytes = sqlite3_serialize(sql->db, "main", &size, 0);
    if (!bytes)
        return error_set(err, -ENOMEM, "back up: there is no memory for a copy of the store");
    *out = (struct store_copy){bytes, (size_t)size};
    return 0;
}

void store_copy_finish(struct store_copy *copy)
{
    sqlite3_free(copy->bytes);
    *copy = (struct store_copy){0};
}
