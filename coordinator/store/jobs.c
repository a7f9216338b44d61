/* jobs.c - stores jobs with their ranks and plans, the data files that they read, their listed
 * checkpoints, and rendezvous values that must survive the process. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/store/internal.h"
#include "coordinator/store/sql.h"

static const char *const rank_states[] = {
    [JOB_RANK_WAITING] = "waiting", [JOB_RANK_READY] = "ready", [JOB_RANK_PAUSED] = "paused",
    [JOB_RANK_EXITED] = "exited",   [JOB_RANK_LOST] = "lost",
};

static const char *const rank_roles[] = {
    [JOB_RANK_TRAINS] = "trains", [JOB_RANK_STAYED] = "stayed", [JOB_RANK_GIVES] = "gives"};

static const char *rank_state_name(int state)
{
    return rank_states[state];
}

static const char *rank_role_name(int role)
{
    return rank_roles[role];
}

static const char *state_name(int state)
{
    return job_state_name((enum job_state)state);
}

static const char *reason_name(int reason)
{
    return job_reason_name((enum job_reason)reason);
}

static const char *kind_name(int kind)
{
    return job_kind_name((enum job_kind)kind);
}

static const struct sql_words states = {state_name, JOB_STATES},
                              reasons = {reason_name, JOB_REASONS},
                              kinds = {kind_name, JOB_GPU + 1};
static const struct sql_words rank_state_words = {rank_state_name,
                                                  sizeof rank_states / sizeof *rank_states},
                              rank_role_words = {rank_role_name,
                                                 sizeof rank_roles / sizeof *rank_roles};

/* The members of a job that follow its number; they are stored in columns of the same names. */
/* clang-format off */
#define MEMBERS(X)                                                                                 \
    X(key, OWNED, NULL) X(name, OWNED, NULL) X(user, OWNED, NULL) X(text, OWNED, NULL)             \
    X(given, OWNED, NULL)                                                                          \
    X(devices_min, NUMBER, NULL) X(devices_max, NUMBER, NULL) X(devices_needed, NUMBER, NULL)      \
    X(kind, WORD, &kinds) X(state, WORD, &states) X(reason, WORD, &reasons) X(words, TEXT, NULL)   \
    X(epoch, NUMBER, NULL) X(plan, TEXT, NULL) X(holding, NUMBER, NULL)                            \
    X(step, NUMBER, NULL) X(steps, NUMBER, NULL) X(loss, REAL, NULL) X(tokens_per_s, REAL, NULL)   \
    X(submitted_ms, NUMBER, NULL) X(started_ms, NUMBER, NULL) X(ended_ms, NUMBER, NULL)            \
    X(held, TEXT, NULL) X(pauses, NUMBER, NULL) X(resumes, NUMBER, NULL)                           \
    X(restarts, NUMBER, NULL) X(restarts_max, NUMBER, NULL) X(reached_step, NUMBER, NULL)          \
    X(again, TEXT, NULL) X(replans, NUMBER, NULL) X(saves, NUMBER, NULL) X(faults, NUMBER, NULL)   \
    X(releases, NUMBER, NULL) X(named, OWNED, NULL) X(finished, NUMBER, NULL)                      \
    X(run_tokens, NUMBER, NULL) X(run_s, REAL, NULL) X(origin, OWNED, NULL)                        \
    X(origin_step, NUMBER, NULL) X(origin_samples, NUMBER, NULL) X(origin_weights, NUMBER, NULL)   \
    X(saves_in, OWNED, NULL)
/* clang-format on */

#define COLUMN(member, kind, words)                                                                \
    {COLUMN_##kind, offsetof(struct job, member), sizeof(((struct job *)0)->member), words},
#define NAME(member, kind, words) ", " #member
#define PLACE(member, kind, words) ", ?"
#define COLUMNS "number" MEMBERS(NAME)

static const struct sql_column columns[] = {COLUMN(number, NUMBER, NULL) MEMBERS(COLUMN)};

static void job_put_ranks(struct sql *sql, const struct job *job)
{
    sql_put(sql, "DELETE FROM ranks WHERE job = ? AND rank >= ?", "uu", job->number,
            (uint64_t)job->rank_count);
    for (size_t i = 0; i < job->rank_count; i++) {
        const struct job_rank *rank = &job->ranks[i];
        sql_put(sql,
                "INSERT OR REPLACE INTO ranks (job, rank, worker, instance, device, state, status,"
                " role) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                "uutuutit", job->number, (uint64_t)i, rank->device.worker, rank->device.instance,
                (uint64_t)rank->device.index, rank_states[rank->state], (int64_t)rank->status,
                rank_roles[rank->role]);
    }
}

void store_put_job(struct store *store, const struct job *job)
{
    columns_put(&store->sql,
                "INSERT OR REPLACE INTO jobs (" COLUMNS ") VALUES (?" MEMBERS(PLACE) ")", columns,
                sizeof columns / sizeof *columns, job);
    job_put_ranks(&store->sql, job);
}

static void job_read_ranks(struct sql *sql, struct job *job)
{
    size_t capacity = 0;
    sqlite3_stmt *row = sql_bind(sql,
                                 "SELECT worker, instance, device, state, status, role FROM ranks"
                                 " WHERE job = ? ORDER BY rank",
                                 "u", job->number);
    while (sql_step(sql, row)) {
        job->ranks = grow(job->ranks, job->rank_count, &capacity, sizeof *job->ranks);
        struct job_rank *rank = &job->ranks[job->rank_count++];
        *rank = (struct job_rank){.status = (int)sqlite3_column_int64(row, 4)};
        snprintf(rank->device.worker, sizeof rank->device.worker, "%s", sql_text(row, 0));
        rank->device.instance = sql_number(row, 1);
        rank->device.index = (unsigned)sql_number(row, 2);
        rank->state = (enum job_rank_state)column_word(sql, sql_text(row, 3), &rank_state_words);
        rank->role = (enum job_rank_role)column_word(sql, sql_text(row, 5), &rank_role_words);
    }
}

/* The newest listed checkpoint. */
static void job_read_checkpoint(struct sql *sql, struct job *job)
{
    sqlite3_stmt *row = sql_bind(sql,
                                 "SELECT step, epoch FROM checkpoints WHERE job = ? AND damaged = 0"
                                 " ORDER BY step DESC, epoch DESC LIMIT 1",
                                 "u", job->number);
    if (sql_step(sql, row)) {
        job->checkpoint_step = sql_number(row, 0);
        job->checkpoint_epoch = (uint32_t)sql_number(row, 1);
    }
    if (row)
        sql_leave(row);
}

/* Read a row of COLUMNS; the caller owns the job. */
static struct job *job_read(struct sql *sql, sqlite3_stmt *row)
{
    struct job *job = xcalloc(1, sizeof *job);
    columns_read(sql, row, columns, sizeof columns / sizeof *columns, job);
    snprintf(job->id, sizeof job->id, "j-%" PRIu64, job->number);
    if (job->step == 0)
        job->loss = NAN; /* older releases had 0 */
    if (isnan(job->tokens_per_s))
        job->tokens_per_s = 0;
    job_read_ranks(sql, job);
    job_read_checkpoint(sql, job);
    return job;
}

int store_read_jobs(struct store *store, size_t ended_max, store_job_cb callback, void *data,
                    struct error *err)
{
    struct sql *sql = &store->sql;
    int rc = 0;
    sqlite3_stmt *row = sql_bind(sql,
                                 "SELECT " COLUMNS " FROM jobs WHERE ended_ms = 0 OR number IN"
                                 " (SELECT number FROM jobs WHERE ended_ms != 0"
                                 "  ORDER BY ended_ms DESC, number DESC LIMIT ?) ORDER BY number",
                                 "i", sql_limit(ended_max));
    while (rc == 0 && sql_step(sql, row)) {
        struct job *job = job_read(sql, row);
        rc = sql->rc == 0 ? callback(data, job, err) : sql_failed(sql, err);
        if (rc < 0)
            error_prefix(err, rc, "%s", job->id);
        job_destroy(job);
    }
    if (row)
        sql_leave(row);
    return rc < 0 ? rc : sql_failed(sql, err);
}

int store_read_overdue(struct store *store, size_t jobs_max, uint64_t before_ms, uint64_t *numbers,
                       size_t most, size_t *count, struct error *err)
{
    struct sql *sql = &store->sql;
    size_t found = 0;
    sqlite3_stmt *row = sql_bind(
        sql,
        "SELECT number FROM jobs WHERE ended_ms != 0 AND (ended_ms < ?1 OR"
        " (ended_ms, number) < (SELECT ended_ms, number FROM jobs WHERE ended_ms != 0"
        "  ORDER BY ended_ms DESC, number DESC LIMIT 1 OFFSET ?2 - 1))"
        " ORDER BY ended_ms, number LIMIT ?3",
        "uii", before_ms, jobs_max < INT64_MAX ? (int64_t)jobs_max : INT64_MAX, (int64_t)most);
    while (sql_step(sql, row))
        numbers[found++] = sql_number(row, 0);
    *count = found;
    return sql_failed(sql, err);
}

void store_remove_job(struct store *store, uint64_t number)
{
    struct sql *sql = &store->sql;
    static const char *const parts[] = {
        "DELETE FROM ranks WHERE job = ?",       "DELETE FROM plans WHERE job = ?",
        "DELETE FROM data_files WHERE job = ?",  "DELETE FROM checkpoints WHERE job = ?",
        "DELETE FROM steps WHERE job = ?",       "DELETE FROM samples WHERE job = ?",
        "DELETE FROM evaluations WHERE job = ?", "DELETE FROM times WHERE job = ?",
        "DELETE FROM jobs WHERE number = ?",
    };
    sql_put(sql,
            "INSERT OR REPLACE INTO removed (number, state, ended_ms)"
            " SELECT number, state, ended_ms FROM jobs WHERE number = ?",
            "u", number);
    sql_put(sql, /* the newest says which revision is the next */
            "DELETE FROM events WHERE job = 'j-' || ? AND revision <"
            " (SELECT MAX(revision) FROM events)",
            "u", number);
    sql_put(sql, "DELETE FROM kept_values WHERE job = 'j-' || ?", "u", number);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        sql_put(sql, parts[i], "u", number);
}

int store_find_removed(struct store *store, uint64_t number, struct store_removed *out,
                       struct error *err)
{
    struct sql *sql = &store->sql;
    int found = 0;
    sqlite3_stmt *row =
        sql_bind(sql, "SELECT state, ended_ms FROM removed WHERE number = ?", "u", number);
    while (sql_step(sql, row)) {
        out->state = (enum job_state)column_word(sql, sql_text(row, 0), &states);
        out->ended_ms = sql_number(row, 1);
        found = 1;
    }
    int rc = sql_failed(sql, err);
    return rc < 0 ? rc : found;
}

static int jobs_read_one(struct sql *sql, sqlite3_stmt *row, struct job **out, struct error *err)
{
    struct job *job = sql_step(sql, row) ? job_read(sql, row) : NULL;
    if (row)
        sql_leave(row);
    int rc = sql_failed(sql, err);
    if (rc < 0) {
        job_destroy(job);
        return rc;
    }
    *out = job;
    return 0;
}

int store_find_key(struct store *store, const char *user, const char *key, struct job **out,
                   struct error *err)
{
    sqlite3_stmt *row = sql_bind(
        &store->sql, "SELECT " COLUMNS " FROM jobs WHERE user = ? AND key = ? AND key != ''", "tt",
        user, key);
    return jobs_read_one(&store->sql, row, out, err);
}

int store_next_number(struct store *store, uint64_t *number, struct error *err)
{
    struct sql *sql = &store->sql;
    sqlite3_stmt *row = sql_bind(sql,
                                 "SELECT 1 + MAX((SELECT COALESCE(MAX(number), 0) FROM jobs),"
                                 " (SELECT COALESCE(MAX(number), 0) FROM removed), jobs_from)"
                                 " FROM cluster",
                                 "");
    uint64_t next = sql_step(sql, row) ? sql_number(row, 0) : 0;
    if (row)
        sql_leave(row);
    int rc = sql_failed(sql, err);
    if (rc == 0)
        *number = next;
    return rc;
}

void store_put_plan(struct store *store, const struct job *job, const char *id,
                    const struct store_plan *plan)
{
    sql_put(&store->sql,
            "INSERT OR REPLACE INTO plans (job, epoch, id, json, candidates, hashes, compute_s)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            "uutttbb", job->number, (uint64_t)job->epoch, id, plan->json,
            plan->candidates ? plan->candidates : "", (const void *)plan->hashes,
            plan->rank_count * sizeof *plan->hashes, (const void *)plan->compute_s,
            plan->compute_s ? plan->rank_count * sizeof *plan->compute_s : 0);
    sql_put(&store->sql, "DELETE FROM plans WHERE job = ? AND epoch < ?", "uu", job->number,
            (uint64_t)job->epoch);
}

/* Copy a blob of one element per rank; NULL if it has another size. */
static void *plan_read_each(sqlite3_stmt *row, int column, size_t count, size_t size)
{
    if (count == 0 || (size_t)sqlite3_column_bytes(row, column) != count * size)
        return NULL;
    void *copy = xcalloc(count, size);
    memcpy(copy, sqlite3_column_blob(row, column), count * size);
    return copy;
}

int store_read_plan(struct store *store, const struct job *job, struct store_plan *out,
                    struct error *err)
{
    struct sql *sql = &store->sql;
    *out = (struct store_plan){0};
    sqlite3_stmt *row = sql_bind(
        sql, "SELECT json, candidates, hashes, compute_s FROM plans WHERE job = ? AND epoch = ?",
        "uu", job->number, (uint64_t)job->epoch);
    if (sql_step(sql, row)) {
        out->rank_count = (size_t)sqlite3_column_bytes(row, 2) / sizeof *out->hashes;
        out->hashes = plan_read_each(row, 2, out->rank_count, sizeof *out->hashes);
        out->compute_s = plan_read_each(row, 3, out->rank_count, sizeof *out->compute_s);
        out->json = xstrdup(sql_text(row, 0));
        out->candidates = xstrdup(sql_text(row, 1));
    }
    if (row)
        sql_leave(row);
    return sql_failed(sql, err);
}

void store_plan_finish(struct store_plan *plan)
{
    free(plan->json);
    free(plan->candidates);
    free(plan->hashes);
    free(plan->compute_s);
    *plan = (struct store_plan){0};
}

void store_put_checkpoint(struct store *store, const struct job *job,
                          const struct store_checkpoint *checkpoint, size_t keep)
{
    sql_put(&store->sql,
            "INSERT OR REPLACE INTO checkpoints (job, step, epoch, folder, bytes, unix_ms)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            "uuutuu", job->number, checkpoint->step, (uint64_t)checkpoint->epoch,
            checkpoint->folder, checkpoint->bytes, checkpoint->unix_ms);
    sql_put(&store->sql,
            "DELETE FROM checkpoints WHERE job = ?1 AND damaged = 0 AND step NOT IN"
            " (SELECT step FROM checkpoints WHERE job = ?1 AND damaged = 0"
            "  ORDER BY step DESC LIMIT ?2)"
            " AND folder NOT IN (SELECT origin FROM jobs WHERE ended_ms = 0)",
            "uu", job->number, (uint64_t)keep);
    sql_put(&store->sql, "DELETE FROM checkpoints WHERE job = ? AND damaged != 0 AND step <= ?",
            "uu", job->number, checkpoint->step);
}

void store_damage_checkpoint(struct store *store, const struct job *job, uint64_t step,
                             uint32_t epoch)
{
    sql_put(&store->sql,
            "UPDATE checkpoints SET damaged = 1 WHERE job = ? AND step = ? AND epoch = ?", "uuu",
            job->number, step, (uint64_t)epoch);
}

int store_read_checkpoints(struct store *store, const struct job *job,
                           struct store_checkpoint **out, size_t *count, struct error *err)
{
    struct sql *sql = &store->sql;
    struct store_checkpoint *items = NULL;
    size_t capacity = 0, found = 0;
    sqlite3_stmt *row =
        sql_bind(sql,
                 "SELECT step, epoch, folder, bytes, unix_ms, damaged FROM checkpoints"
                 " WHERE job = ? ORDER BY step DESC, epoch DESC",
                 "u", job->number);
    while (sql_step(sql, row)) {
        items = grow(items, found, &capacity, sizeof *items);
        items[found++] = (struct store_checkpoint){
            .step = sql_number(row, 0),
            .epoch = (uint32_t)sql_number(row, 1),
            .folder = xstrdup(sql_text(row, 2)),
            .bytes = sql_number(row, 3),
            .unix_ms = sql_number(row, 4),
            .damaged = sql_number(row, 5) != 0,
        };
    }
    int rc = sql_failed(sql, err);
    if (rc < 0) {
        store_checkpoints_free(items, found);
        return rc;
    }
    *out = items;
    *count = found;
    return 0;
}

void store_checkpoints_free(struct store_checkpoint *checkpoints, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)checkpoints[i].folder);
    free(checkpoints);
}

void store_put_corpus(struct store *store, const struct job *job, const struct corpus *corpus)
{
    for (size_t i = 0; i < corpus->count; i++) {
        const struct corpus_file *file = &corpus->files[i];
        sql_put(&store->sql,
                "INSERT OR REPLACE INTO data_files (job, place, node, epoch, path, size, hash)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                "uututuu", job->number, (uint64_t)i, corpus->node, (uint64_t)corpus->epoch,
                file->path, file->size, file->hash);
    }
}

int store_read_corpus(struct store *store, const struct job *job, struct corpus **out,
                      struct error *err)
{
    struct sql *sql = &store->sql;
    sqlite3_stmt *row = sql_bind(sql,
                                 "SELECT node, epoch, path, size, hash FROM data_files"
                                 " WHERE job = ? ORDER BY place",
                                 "u", job->number);
    *out = NULL;
    while (sql_step(sql, row)) {
        if (!*out)
            *out = corpus_create(sql_text(row, 0), (uint32_t)sql_number(row, 1));
        corpus_add(*out, sql_text(row, 2), sql_number(row, 3), sql_number(row, 4));
    }
    int rc = sql_failed(sql, err);
    if (rc < 0) {
        corpus_destroy(*out);
        *out = NULL;
    }
    return rc;
}

void store_put_value(struct store *store, const char *job, uint64_t epoch, const char *key,
                     const void *value, size_t size)
{
    sql_put(&store->sql,
            "INSERT OR REPLACE INTO kept_values (job, epoch, key, value) VALUES (?, ?, ?, ?)",
            "tutb", job, epoch, key, size ? value : "", size);
}

void store_delete_values(struct store *store, const char *job, const char *prefix)
{
    sql_put(&store->sql,
            "DELETE FROM kept_values WHERE job = ?1 AND substr(key, 1, length(?2)) = ?2", "tt", job,
            prefix);
}

int store_read_values(struct store *store, store_value_cb callback, void *data, struct error *err)
{
    struct sql *sql = &store->sql;
    int rc = 0;
    sqlite3_stmt *row = sql_bind(sql, "SELECT job, epoch, key, value FROM kept_values", "");
    while (rc == 0 && sql_step(sql, row))
        rc = callback(data, sql_text(row, 0), sql_number(row, 1), sql_text(row, 2),
                      sqlite3_column_blob(row, 3), (size_t)sqlite3_column_bytes(row, 3), err);
    if (row)
        sql_leave(row);
    return rc < 0 ? rc : sql_failed(sql, err);
}
