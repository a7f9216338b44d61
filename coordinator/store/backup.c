/* backup.c - copies the store as it is at one moment, while it goes on working.
 *
 * The copy says when it was made: a store that is restored from it has to know its age
 * (restoring.c). */
#include "coordinator/store/internal.h"

#include <errno.h>

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
