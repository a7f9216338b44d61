/* values.c - stores rendezvous values that must survive the process. */
#include "coordinator/store/internal.h"

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
