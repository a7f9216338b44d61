/* cluster.c - stores workers with their reports, including lost ones; tokens and credentials; and
 * the cluster's history. Of that it drops what is old, but not what happened to a job that is still
 * known: only its steps, which its curve has as well. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/hardware/hardware.h"
#include "common/message/message.h"
#include "coordinator/store/internal.h"

void store_put_worker(struct store *store, const struct worker *worker)
{
    size_t size;
    Gimbal__HardwareReport *message = hardware_report_to_wire(worker->report);
    void *report = message_pack(&message->base, &size);
    sql_put(&store->sql,
            "INSERT OR REPLACE INTO workers (name, instance, past, report, dead, lost_ms, draining,"
            " drain_reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            "tubbuuut", worker->name, worker->instance, (const void *)worker->past,
            sizeof worker->past, (const void *)report, size, (uint64_t)worker->dead,
            worker->lost_ms, (uint64_t)worker->draining, worker->drain_reason);
    free(report);
    gimbal__hardware_report__free_unpacked(message, NULL);
}

void store_delete_worker(struct store *store, const char *name)
{
    sql_put(&store->sql, "DELETE FROM workers WHERE name = ?", "t", name);
}

static int worker_read_report(sqlite3_stmt *row, int column, struct hardware_report **out,
                              struct error *err)
{
    ProtobufCMessage *message;
    size_t size = (size_t)sqlite3_column_bytes(row, column);
    int rc = message_unpack(&gimbal__hardware_report__descriptor, sqlite3_column_blob(row, column),
                            size, message_quota(size), &message, err);
    if (rc < 0)
        return rc;
    rc = hardware_report_from_wire((const Gimbal__HardwareReport *)message, out, err);
    message_free(message);
    return rc;
}

static int worker_hand_over(sqlite3_stmt *row, store_worker_cb callback, void *data,
                            struct error *err)
{
    struct worker worker = {
        .instance = sql_number(row, 1),
        .dead = sql_number(row, 4) != 0,
        .lost_ms = sql_number(row, 5),
        .draining = sql_number(row, 6) != 0,
    };
    snprintf(worker.name, sizeof worker.name, "%s", sql_text(row, 0));
    snprintf(worker.drain_reason, sizeof worker.drain_reason, "%s", sql_text(row, 7));
    size_t size = (size_t)sqlite3_column_bytes(row, 2);
    if (size > 0)
        memcpy(worker.past, sqlite3_column_blob(row, 2),
               size < sizeof worker.past ? size : sizeof worker.past);
    int rc = worker_read_report(row, 3, &worker.report, err);
    if (rc < 0)
        return error_prefix(err, rc, "worker '%s'", worker.name);
    worker.holders = xcalloc(worker.report->device_count, sizeof *worker.holders);
    rc = callback(data, &worker, err);
    free(worker.holders);
    hardware_report_destroy(worker.report);
    return rc;
}

int store_read_workers(struct store *store, store_worker_cb callback, void *data, struct error *err)
{
    struct sql *sql = &store->sql;
    int rc = 0;
    sqlite3_stmt *row = sql_bind(sql,
                                 "SELECT name, instance, past, report, dead, lost_ms, draining,"
                                 " drain_reason FROM workers ORDER BY name",
                                 "");
    while (rc == 0 && sql_step(sql, row))
        rc = worker_hand_over(row, callback, data, err);
    if (row)
        sql_leave(row);
    return rc < 0 ? rc : sql_failed(sql, err);
}

void store_put_token(struct store *store, const struct identity_token *token)
{
    sql_put(&store->sql,
            "INSERT OR REPLACE INTO tokens (id, role, name, hash, issued_ms, expires_ms, uses_left)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            "tttbuuu", token->id, identity_role_names[token->role], token->name,
            (const void *)token->hash, sizeof token->hash, token->issued_ms, token->expires_ms,
            (uint64_t)token->uses_left);
}

void store_put_credential(struct store *store, const struct identity_credential *credential)
{
    sql_put(&store->sql,
            "INSERT OR REPLACE INTO credentials (role, name, hash, issued_ms, revoked_ms)"
            " VALUES (?, ?, ?, ?, ?)",
            "ttbuu", identity_role_names[credential->role], credential->name,
            (const void *)credential->hash, sizeof credential->hash, credential->issued_ms,
            credential->revoked_ms);
}

static void identity_read_role(struct sql *sql, const char *word, enum identity_role *out)
{
    struct error err;
    int rc = identity_role_parse(word, out, &err);
    if (rc < 0)
        sql_fail(sql, -EPROTO, "%s", err.text);
}

static void identity_read_hash(struct sql *sql, sqlite3_stmt *row, int column,
                               uint8_t out[IDENTITY_HASH_BYTES])
{
    if (sqlite3_column_bytes(row, column) == IDENTITY_HASH_BYTES)
        memcpy(out, sqlite3_column_blob(row, column), IDENTITY_HASH_BYTES);
    else
        sql_fail(sql, -EPROTO, "a hash of a token or credential has a wrong length");
}

static void identity_read_tokens(struct sql *sql, struct identity *identity)
{
    sqlite3_stmt *row = sql_bind(
        sql, "SELECT id, role, name, hash, issued_ms, expires_ms, uses_left FROM tokens", "");
    while (sql_step(sql, row)) {
        struct identity_token token = {.issued_ms = sql_number(row, 4),
                                       .expires_ms = sql_number(row, 5),
                                       .uses_left = (uint32_t)sql_number(row, 6)};
        snprintf(token.id, sizeof token.id, "%s", sql_text(row, 0));
        snprintf(token.name, sizeof token.name, "%s", sql_text(row, 2));
        identity_read_role(sql, sql_text(row, 1), &token.role);
        identity_read_hash(sql, row, 3, token.hash);
        identity_restore_token(identity, &token);
    }
}

static void identity_read_credentials(struct sql *sql, struct identity *identity)
{
    sqlite3_stmt *row =
        sql_bind(sql, "SELECT role, name, hash, issued_ms, revoked_ms FROM credentials", "");
    while (sql_step(sql, row)) {
        struct identity_credential credential = {.issued_ms = sql_number(row, 3),
                                                 .revoked_ms = sql_number(row, 4)};
        snprintf(credential.name, sizeof credential.name, "%s", sql_text(row, 1));
        identity_read_role(sql, sql_text(row, 0), &credential.role);
        identity_read_hash(sql, row, 2, credential.hash);
        identity_restore_credential(identity, &credential);
    }
}

int store_read_identity(struct store *store, struct identity *identity, struct error *err)
{
    identity_read_tokens(&store->sql, identity);
    identity_read_credentials(&store->sql, identity);
    return sql_failed(&store->sql, err);
}

/* events are dropped this many at a time, which spreads the cost */
#define DROPPED_TOGETHER 1000

/* The jobs that the events after `from` up to `to` are of, once each; the caller frees names and
 * array. */
static char **events_jobs(struct sql *sql, uint64_t from, uint64_t to, size_t *count)
{
    char **jobs = NULL;
    size_t capacity = 0;
    *count = 0;
    sqlite3_stmt *row = sql_bind(sql,
                                 "SELECT DISTINCT job FROM events"
                                 " WHERE revision > ? AND revision <= ? AND job != ''",
                                 "uu", from, to);
    while (sql_step(sql, row)) {
        jobs = grow(jobs, *count, &capacity, sizeof(char *));
        jobs[(*count)++] = xstrdup(sql_text(row, 0));
    }
    return jobs;
}

/* Drop what is no longer among the newest STORE_EVENTS_MAX: steps and what is of no job, and of the
 * jobs that have more than enough of the rest, the oldest. */
static void events_drop(struct sql *sql, uint64_t last)
{
    size_t count;
    uint64_t from = last > DROPPED_TOGETHER ? last - DROPPED_TOGETHER : 0;
    sql_put(sql, "DELETE FROM events WHERE revision <= ? AND (job = '' OR kind = 'step')", "u",
            last);
    char **jobs = events_jobs(sql, from, last, &count);
    for (size_t i = 0; i < count; i++) {
        sql_put(sql,
                "DELETE FROM events WHERE job = ?1 AND kind != 'step' AND revision <= ?2 AND"
                " revision <= (SELECT revision FROM events WHERE job = ?1 AND kind != 'step'"
                "  ORDER BY revision DESC LIMIT 1 OFFSET ?3)",
                "tuu", jobs[i], last, (uint64_t)STORE_JOB_EVENTS_MAX);
        free(jobs[i]);
    }
    free(jobs);
}

void store_put_event(struct store *store, uint64_t revision, const Gimbal__Event *event)
{
    sql_put(&store->sql,
            "INSERT INTO events (revision, unix_ms, job, node, kind, text, json)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            "uuttttt", revision, event->unix_ms, event->job, event->node, event->kind, event->text,
            event->json);
    if (revision % DROPPED_TOGETHER == 0 && revision > STORE_EVENTS_MAX)
        events_drop(&store->sql, revision - STORE_EVENTS_MAX);
}

#define CHOSEN                                                                                     \
    "SELECT revision, unix_ms, job, node, kind, text, json FROM events WHERE revision > ?1"        \
    " AND (?2 = '' OR job = ?2) AND (?3 = '' OR node = ?3) AND kind <> ?4 ORDER BY revision "

int store_read_events(struct store *store, const struct store_query *query, store_event_cb callback,
                      void *data, struct error *err)
{
    struct sql *sql = &store->sql;
    const char *text = query->newest ? "SELECT * FROM (" CHOSEN "DESC LIMIT ?5) ORDER BY revision"
                                     : CHOSEN "LIMIT ?5";
    sqlite3_stmt *row = sql_bind(sql, text, "utttu", query->after, query->job, query->node,
                                 query->except ? query->except : "", (uint64_t)query->count_max);
    int rc = 0;
    while (rc >= 0 && sql_step(sql, row)) {
        Gimbal__Event event = GIMBAL__EVENT__INIT;
        event.unix_ms = sql_number(row, 1);
        event.job = (char *)sql_text(row, 2);
        event.node = (char *)sql_text(row, 3);
        event.kind = (char *)sql_text(row, 4);
        event.text = (char *)sql_text(row, 5);
        event.json = (char *)sql_text(row, 6);
        rc = callback(data, sql_number(row, 0), &event);
    }
    if (row)
        sql_leave(row);
    return sql_failed(sql, err);
}
