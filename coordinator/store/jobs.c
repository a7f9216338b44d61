/* jobs.c - jobs with their ranks, and their plans. */
#include "coordinator/store/internal.h"

#include "common/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                    \
    "number, key, name, user, text, given, devices_min, devices_max, devices_needed, kind, state," \
    " reason, words, epoch, plan, holding, step, steps, loss, tokens_per_s, submitted_ms,"         \
    " started_ms, ended_ms, held, pauses, resumes, restarts, restarts_max, reached_step, again,"   \
    " replans, saves, faults"

static const char *const rank_states[] = {
    [JOB_RANK_WAITING] = "waiting", [JOB_RANK_READY] = "ready", [JOB_RANK_PAUSED] = "paused",
    [JOB_RANK_EXITED] = "exited",   [JOB_RANK_LOST] = "lost",
};

static const char *const rank_roles[] = {
    [JOB_RANK_TRAINS] = "trains", [JOB_RANK_STAYED] = "stayed", [JOB_RANK_GIVES] = "gives"};

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
    sql_put(&store->sql,
            "INSERT OR REPLACE INTO jobs (" COLUMNS ") VALUES"
            " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
            " ?, ?, ?, ?, ?, ?, ?)",
            "utttttuuuttttutuuudduuutuuuuutuuu", job->number, job->key, job->name, job->user,
            job->text, job->given, (uint64_t)job->devices_min, (uint64_t)job->devices_max,
            (uint64_t)job->devices_needed, job_kind_name(job->kind), job_state_name(job->state),
            job_reason_name(job->reason), job->words, (uint64_t)job->epoch, job->plan,
            (uint64_t)job->holding, job->step, job->steps, job->loss, job->tokens_per_s,
            job->submitted_ms, job->started_ms, job->ended_ms, job->held, (uint64_t)job->pauses,
            (uint64_t)job->resumes, (uint64_t)job->restarts, (uint64_t)job->restarts_max,
            job->reached_step, job->again, (uint64_t)job->replans, (uint64_t)job->saves,
            (uint64_t)job->faults);
    put_ranks(&store->sql, job);
}

/* The enumerator by that name; fails when there is none. */
static int find_word(struct sql *sql, const char *text, int count, const char *(*name_of)(int))
{
    for (int i = 0; i < count; i++)
        if (strcmp(name_of(i), text) == 0)
            return i;
    sql_fail(sql, -EPROTO, "'%.40s' means nothing to this release", text);
    return 0;
}

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
        rank->state = (enum job_rank_state)find_word(
            sql, sql_text(row, 3), sizeof rank_states / sizeof *rank_states, rank_state_name);
        rank->role = (enum job_rank_role)find_word(
            sql, sql_text(row, 5), sizeof rank_roles / sizeof *rank_roles, rank_role_name);
    }
}

/* Of a row of COLUMNS; yours. */
static struct job *read_job(struct sql *sql, sqlite3_stmt *row)
{
    struct job *job = xcalloc(1, sizeof *job);
    job->number = sql_number(row, 0);
    snprintf(job->id, sizeof job->id, "j-%" PRIu64, job->number);
    job->key = xstrdup(sql_text(row, 1));
    job->name = xstrdup(sql_text(row, 2));
    job->user = xstrdup(sql_text(row, 3));
    job->text = xstrdup(sql_text(row, 4));
    job->given = xstrdup(sql_text(row, 5));
    job->devices_min = (unsigned)sql_number(row, 6);
    job->devices_max = (unsigned)sql_number(row, 7);
    job->devices_needed = (unsigned)sql_number(row, 8);
    job->kind = (enum job_kind)find_word(sql, sql_text(row, 9), JOB_GPU + 1, kind_name);
    job->state = (enum job_state)find_word(sql, sql_text(row, 10), JOB_STATES, state_name);
    job->reason = (enum job_reason)find_word(sql, sql_text(row, 11), JOB_REASONS, reason_name);
    snprintf(job->words, sizeof job->words, "%s", sql_text(row, 12));
    job->epoch = (uint32_t)sql_number(row, 13);
    snprintf(job->plan, sizeof job->plan, "%s", sql_text(row, 14));
    job->holding = sql_number(row, 15) != 0;
    job->step = sql_number(row, 16);
    job->steps = sql_number(row, 17);
    job->loss = sqlite3_column_double(row, 18);
    job->tokens_per_s = sqlite3_column_double(row, 19);
    job->submitted_ms = sql_number(row, 20);
    job->started_ms = sql_number(row, 21);
    job->ended_ms = sql_number(row, 22);
    snprintf(job->held, sizeof job->held, "%s", sql_text(row, 23));
    job->pauses = (uint32_t)sql_number(row, 24);
    job->resumes = (uint32_t)sql_number(row, 25);
    job->restarts = (unsigned)sql_number(row, 26);
    job->restarts_max = (unsigned)sql_number(row, 27);
    job->reached_step = sql_number(row, 28);
    snprintf(job->again, sizeof job->again, "%s", sql_text(row, 29));
    job->replans = sql_number(row, 30) != 0;
    job->saves = sql_number(row, 31) != 0;
    job->faults = (unsigned)sql_number(row, 32);
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

int store_find_job(struct store *store, const char *id, struct job **out, struct error *err)
{
    uint64_t number;
    char rest;
    struct job *job = NULL;
    if (sscanf(id, "j-%" SCNu64 "%c", &number, &rest) == 1) {
        sqlite3_stmt *row =
            sql_bind(&store->sql, "SELECT " COLUMNS " FROM jobs WHERE number = ?", "u", number);
        int rc = read_one(&store->sql, row, &job, err);
        if (rc < 0)
            return rc;
    }
    if (!job)
        return error_set(err, -ENOENT, "there is no job '%.64s'", id);
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
    sqlite3_stmt *row = sql_bind(sql, "SELECT COALESCE(MAX(number), 0) + 1 FROM jobs", "");
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
}

/* Of a blob with one for each rank; yours, NULL where it has another size. */
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
