/* jobs.c - stores jobs with their ranks, and their plans. */
#include "coordinator/store/columns.h"
#include "coordinator/store/internal.h"

#include "common/base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    X(releases, NUMBER, NULL) X(named, OWNED, NULL)
/* clang-format on */

#define COLUMN(member, kind, words)                                                                \
    {COLUMN_##kind, offsetof(struct job, member), sizeof(((struct job *)0)->member), words},
#define NAME(member, kind, words) ", " #member
#define PLACE(member, kind, words) ", ?"
#define COLUMNS "number" MEMBERS(NAME)

static const struct sql_column columns[] = {COLUMN(number, NUMBER, NULL) MEMBERS(COLUMN)};

static void put_ranks(struct sql *sql, const struct job *job)
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
    put_ranks(&store->sql, job);
}

static void read_ranks(struct sql *sql, struct job *job)
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

/* Read a row of COLUMNS; the caller owns the job. */
static struct job *read_job(struct sql *sql, sqlite3_stmt *row)
{
    struct job *job = xcalloc(1, sizeof *job);
    columns_read(sql, row, columns, sizeof columns / sizeof *columns, job);
    snprintf(job->id, sizeof job->id, "j-%" PRIu64, job->number);
    read_ranks(sql, job);
    checkpoints_read_newest(sql, job);
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
                                 "  ORDER BY number DESC LIMIT ?) ORDER BY number",
                                 "u", (uint64_t)ended_max);
    while (rc == 0 && sql_step(sql, row)) {
        struct job *job = read_job(sql, row);
        rc = sql->rc == 0 ? callback(data, job, err) : sql_failed(sql, err);
        if (rc < 0)
            error_prefix(err, rc, "%s", job->id);
        job_destroy(job);
    }
    if (row)
        sql_leave(row);
    return rc < 0 ? rc : sql_failed(sql, err);
}

static int read_one(struct sql *sql, sqlite3_stmt *row, struct job **out, struct error *err)
{
    struct job *job = sql_step(sql, row) ? read_job(sql, row) : NULL;
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
    return read_one(&store->sql, row, out, err);
}

int store_next_number(struct store *store, uint64_t *number, struct error *err)
{
    struct sql *sql = &store->sql;
    sqlite3_stmt *row = sql_bind(sql,
                                 "SELECT 1 + MAX((SELECT COALESCE(MAX(number), 0) FROM jobs),"
                                 " jobs_from) FROM cluster",
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
static void *read_each(sqlite3_stmt *row, int column, size_t count, size_t size)
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
        out->hashes = read_each(row, 2, out->rank_count, sizeof *out->hashes);
        out->compute_s = read_each(row, 3, out->rank_count, sizeof *out->compute_s);
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
