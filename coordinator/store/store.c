/* store.c - the database as a whole: its directory, its cluster, its terms. */
#include "coordinator/store/internal.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FILE_NAME "store.db"
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xff534d42
#endif
#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xfe534d42
#endif

/* SQLite's locks and write-ahead log are not safe on network file systems. */
static int check_local(const char *path, struct error *err)
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
static void configure(struct sql *sql)
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
static void identify(struct store *store)
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
static int check_writable(const char *directory, struct error *err)
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
        rc = check_local(directory, err);
    if (rc == 0)
        rc = check_writable(directory, err);
    if (rc == 0)
        rc = sql_open(&store->sql, path, err);
    if (rc == 0) {
        configure(&store->sql);
        schema_migrate(&store->sql);
        identify(store);
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
    double began_s = clock_now_s();
    sql_commit(&store->sql);
    if (any)
        histogram_add(&store->commit_ns, (uint64_t)(1e9 * (clock_now_s() - began_s)));
    room_after_commit(store);
    return sql_failed(&store->sql, err);
}

const struct histogram *store_commit_ns(const struct store *store)
{
    return &store->commit_ns;
}
