/* workers.c - stores workers with their reports, including lost ones. */
#include "coordinator/store/internal.h"

#include "common/base/memory.h"
#include "common/hardware/wire.h"
#include "common/rpc/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int read_report(sqlite3_stmt *row, int column, struct hardware_report **out,
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

static int hand_over(sqlite3_stmt *row, store_worker_cb callback, void *data, struct error *err)
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
    int rc = read_report(row, 3, &worker.report, err);
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
        rc = hand_over(row, callback, data, err);
    if (row)
        sql_leave(row);
    return rc < 0 ? rc : sql_failed(sql, err);
}
