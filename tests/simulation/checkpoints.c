/* checkpoints.c - the store's part in checkpoints: none, for simulated executors write none. */
#include "coordinator/store/sql.h"
#include "coordinator/store/store.h"
#include "tests/simulation/world.h"

void store_put_checkpoint(struct store *store, const struct job *job,
                          const struct store_checkpoint *checkpoint, size_t keep)
{
    (void)store, (void)checkpoint, (void)keep;
    world_fail("a checkpoint of %s is stored", job->id);
}

void store_damage_checkpoint(struct store *store, const struct job *job, uint64_t step,
                             uint32_t epoch)
{
    (void)store, (void)epoch;
    world_fail("the checkpoint of step %d of %s is damaged", (int)step, job->id);
}

int store_read_checkpoints(struct store *store, const struct job *job,
                           struct store_checkpoint **out, size_t *count, struct error *err)
{
    (void)store, (void)job, (void)err;
    *out = NULL;
    *count = 0;
    return 0;
}

void store_checkpoints_free(struct store_checkpoint *checkpoints, size_t count)
{
    (void)checkpoints, (void)count;
}

void store_put_value(struct store *store, const char *job, uint64_t epoch, const char *key,
                     const void *value, size_t size)
{
    (void)store, (void)epoch, (void)value, (void)size;
    world_fail("%s of %s is stored", key, job);
}

/* There are none. */
void store_delete_values(struct store *store, const char *job, const char *prefix)
{
    (void)store, (void)job, (void)prefix;
}

int store_read_values(struct store *store, store_value_cb callback, void *data, struct error *err)
{
    (void)store, (void)callback, (void)data, (void)err;
    return 0;
}

/* A function of the real store that nobody has simulated would find no database: it is not
 * linked, or says so. */
void sql_put(struct sql *sql, const char *text, const char *types, ...)
{
    (void)sql, (void)types;
    world_fail("the real store is told: %s", text);
}
