/* checkpoints.c - stores the listed checkpoints, from which jobs may start. */
#include "coordinator/store/internal.h"

#include "common/base/memory.h"

#include <stdlib.h>

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
            "  ORDER BY step DESC LIMIT ?2)",
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

void checkpoints_read_newest(struct sql *sql, struct job *job)
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
