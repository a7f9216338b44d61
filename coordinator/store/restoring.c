/* restoring.c - makes a store from a copy of one.
 *
 * While a copy grows old, terms, epochs, jobs and events continue to be numbered, and none of these
 * numbers may be used twice: workers refuse an older term, executors an older epoch, and whoever
 * follows events skips what it has seen. So the copy says when it was made, and the restored store
 * continues at a safe distance: of each kind at most one number per second is assumed to have been
 * used since, and of events at most a thousand. What was running is not known: jobs leave their
 * epoch, wherever they are by then, and begin the next. Join tokens may have been used since, so
 * none of them is kept. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "coordinator/store/internal.h"

#define MARGIN UINT64_C(1000) /* numbers skipped however young the copy is */
#define WORDS_RESTORED "the coordinator's store was restored from a backup"

static int restore_copy_bytes(int from, int to, const char *file, struct error *err)
{
    char head[16];
    if (pread(from, head, sizeof head, 0) != sizeof head ||
        memcmp(head, "SQLite format 3", sizeof head) != 0)
        return error_set(err, -EINVAL, "'%s' is no backup: it is not a file of SQLite", file);
    for (ssize_t done = 1; done > 0;) {
        done = sendfile(to, from, NULL, 1u << 20);
        if (done < 0)
            return error_set(err, -errno, "copy '%s': %s", file, strerror(errno));
    }
    return fsync(to) == 0 ? 0 : error_set(err, -errno, "copy '%s': %s", file, strerror(errno));
}

static int restore_copy_file(const char *file, const char *path, struct error *err)
{
    int from = open(file, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return error_set(err, -errno, "'%s': %s", file, strerror(errno));
    int rc = 0, to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0)
        rc = error_set(err, -errno, "'%s': %s", path, strerror(errno));
    if (rc == 0)
        rc = restore_copy_bytes(from, to, file, err);
    close(from);
    if (to >= 0)
        close(to);
    return rc;
}

/* How many terms, epochs and jobs may have been used since the copy was made. */
static uint64_t restore_numbers_since(uint64_t copied_ms, uint64_t now_ms)
{
    return (now_ms - copied_ms) / 1000 + MARGIN;
}

static void restore_move_jobs(struct sql *sql, uint64_t skipped)
{
    sql_put(sql,
            "UPDATE cluster SET jobs_from = ? + MAX(jobs_from,"
            " (SELECT COALESCE(MAX(number), 0) FROM jobs),"
            " (SELECT COALESCE(MAX(number), 0) FROM removed))",
            "u", skipped);
    sql_put(sql,
            "DELETE FROM plans WHERE epoch !="
            " (SELECT epoch FROM jobs WHERE number = plans.job)",
            "");
    sql_put(sql,
            "UPDATE plans SET epoch = epoch + ?"
            " WHERE job IN (SELECT number FROM jobs WHERE ended_ms = 0)",
            "u", skipped);
    sql_put(sql, "UPDATE jobs SET epoch = epoch + ? WHERE ended_ms = 0", "u", skipped);
    sql_put(sql,
            "UPDATE jobs SET state = CASE replans WHEN 0 THEN 'FAILING' ELSE 'REPLANNING' END,"
            " reason = ?, words = ?"
            " WHERE state IN ('STARTING', 'RUNNING', 'PAUSING', 'PAUSED')",
            "tt", job_reason_name(JOB_REASON_REPLAN), WORDS_RESTORED);
    sql_put(sql, "DELETE FROM kept_values", "");
}

static void restore_move_events(struct sql *sql, uint64_t copied_ms, uint64_t now_ms)
{
    /* By way of negative numbers, so that no revision is there twice at any moment. */
    sql_put(sql, "UPDATE events SET revision = -revision - ?", "u",
            now_ms - copied_ms + 1000 * MARGIN);
    sql_put(sql, "UPDATE events SET revision = -revision", "");
    sql_put(sql,
            "INSERT INTO events (revision, unix_ms, job, node, kind, text, json)"
            " SELECT COALESCE(MAX(revision), 0) + 1, ?, '', '', 'restored', ?, '' FROM events",
            "ut", now_ms, WORDS_RESTORED);
}

/* Read what the copy says of itself, and turn it into the restored store in place. -EINVAL: it is
 * no backup, or it was made in the future. */
static int restore_go_on(struct store *store, const char *file, uint64_t now_ms,
                         struct store_restored *out, struct error *err)
{
    struct sql *sql = &store->sql;
    sqlite3_stmt *row = sql_bind(
        sql, "SELECT id, copied_ms, (SELECT COUNT(*) FROM jobs WHERE ended_ms = 0) FROM cluster",
        "");
    if (sql_step(sql, row)) {
        *out = (struct store_restored){sql_number(row, 0), sql_number(row, 1), sql_number(row, 2),
                                       NULL};
        sql_leave(row);
    }
    if (sql->rc == 0 && out->copied_ms == 0)
        return error_set(err, -EINVAL,
                         "'%s' is a store, but no backup: only what 'gimbal cluster backup' wrote "
                         "says when it was made",
                         file);
    if (sql->rc == 0 && out->copied_ms > now_ms)
        return error_set(err, -EINVAL,
                         "'%s' was made %" PRIu64 " s from now: set this machine's clock", file,
                         (out->copied_ms - now_ms) / 1000 + 1);
    uint64_t skipped = restore_numbers_since(out->copied_ms, now_ms);
    sql_put(sql, "UPDATE cluster SET term = term + ?", "u", skipped);
    restore_move_jobs(sql, skipped);
    restore_move_events(sql, out->copied_ms, now_ms);
    sql_put(sql, "DELETE FROM tokens", "");
    sql_commit(sql);
    sql_script(sql, "PRAGMA wal_checkpoint(TRUNCATE)");
    return sql_failed(sql, err);
}

/* Check the store that is there already: it must not be in use, and must be of the same cluster. A
 * damaged one may be replaced. */
static int restore_check_present(const char *directory, const char *path, uint64_t cluster,
                                 struct error *err)
{
    struct store *present;
    struct error damage;
    if (access(path, F_OK) < 0)
        return 0;
    int rc = store_open(directory, &present, &damage);
    if (rc == -EBUSY)
        return error_set(err, rc, "%s", damage.text);
    if (rc < 0)
        return 0;
    if (store_cluster(present) != cluster)
        rc = error_set(err, -EEXIST,
                       "'%s' is the store of another cluster: name another folder with --state, or "
                       "move it away",
                       path);
    store_close(present);
    return rc;
}

/* Move the present store out of the way, with the files that SQLite left beside it. *aside is its
 * new path, to be freed; NULL: there was no store. */
static int restore_set_aside(const char *path, uint64_t now_ms, char **aside, struct error *err)
{
    static const char *const parts[] = {"-wal", "-shm", ""};
    int rc = 0;
    *aside = NULL;
    if (access(path, F_OK) < 0)
        return 0;
    *aside = xasprintf("%s.%" PRIu64, path, now_ms / 1000);
    for (size_t i = 0; rc == 0 && i < sizeof parts / sizeof *parts; i++) {
        char *from = xasprintf("%s%s", path, parts[i]), *to = xasprintf("%s%s", *aside, parts[i]);
        if (rename(from, to) < 0 && (errno != ENOENT || !*parts[i]))
            rc = error_set(err, -errno, "'%s': %s", from, strerror(errno));
        free(from);
        free(to);
    }
    return rc;
}

/* Give the file to the owner of the folder, since the caller may be root. */
static int restore_give_to_owner(const char *directory, const char *path, struct error *err)
{
    struct stat status;
    if (geteuid() != 0)
        return 0;
    if (stat(directory, &status) < 0 || chown(path, status.st_uid, status.st_gid) < 0)
        return error_set(err, -errno, "'%s': %s", path, strerror(errno));
    return 0;
}

static int restore_put_in_place(const char *directory, const char *part, uint64_t now_ms,
                                struct store_restored *out, struct error *err)
{
    char *path = store_path(directory);
    int rc = restore_check_present(directory, path, out->cluster, err);
    if (rc == 0)
        rc = restore_give_to_owner(directory, part, err);
    if (rc == 0)
        rc = restore_set_aside(path, now_ms, &out->aside, err);
    if (rc == 0 && rename(part, path) < 0)
        rc = error_set(err, -errno, "'%s': %s", path, strerror(errno));
    if (rc == 0)
        rc = folder_sync(directory);
    free(path);
    return rc;
}

/* Open the copy. What is wrong with it is wrong with the original, so errors name that. */
static int restore_open_copy(const char *folder, const char *file, struct store **out,
                             struct error *err)
{
    struct error why;
    int rc = store_open(folder, out, &why);
    return rc < 0 ? error_set(err, rc, "'%s' cannot be used: %s", file, why.text) : 0;
}

int store_restore(const char *directory, const char *file, uint64_t now_ms,
                  struct store_restored *out, struct error *err)
{
    struct store *store = NULL;
    bool made = access(directory, F_OK) < 0;
    char *folder = xasprintf("%s/restoring", directory), *part = store_path(folder);
    *out = (struct store_restored){0};
    int rc = folder_make(folder, err);
    if (rc == 0 && unlink(part) < 0 && errno != ENOENT) /* of a restore that was interrupted */
        rc = error_set(err, -errno, "'%s': %s", part, strerror(errno));
    if (rc == 0)
        rc = restore_copy_file(file, part, err);
    if (rc == 0)
        rc = restore_open_copy(folder, file, &store, err);
    if (rc == 0)
        rc = restore_go_on(store, file, now_ms, out, err);
    store_close(store);
    if (rc == 0)
        rc = restore_put_in_place(directory, part, now_ms, out, err);
    unlink(part);
    rmdir(folder);
    if (rc < 0 && made)
        rmdir(directory);
    free(part);
    free(folder);
    return rc;
}
