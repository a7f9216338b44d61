/* stored.c - what a coordinator reads of its simulated disk when it begins, and later. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "tests/simulation/disk.h"

int store_read_workers(struct store *store, store_worker_cb callback, void *data, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < store->disk->worker_count && rc == 0; i++)
        rc = callback(data, store->disk->workers[i], err);
    return rc;
}

int store_read_jobs(struct store *store, size_t ended_max, store_job_cb callback, void *data,
                    struct error *err)
{
    const struct disk *disk = store->disk;
    size_t ended = 0;
    int rc = 0;
    for (size_t i = 0; i < disk->job_count; i++)
        ended += job_ended(disk->jobs[i]) ? 1 : 0;
    for (size_t i = 0; i < disk->job_count && rc == 0; i++)
        if (!job_ended(disk->jobs[i]) || ended-- <= ended_max)
            rc = callback(data, disk->jobs[i], err);
    return rc;
}

int store_find_key(struct store *store, const char *user, const char *key, struct job **out,
                   struct error *err)
{
    (void)err;
    const struct disk *disk = store->disk;
    *out = NULL;
    for (size_t i = disk->job_count; i-- > 0 && !*out;)
        if (key[0] && strcmp(disk->jobs[i]->key, key) == 0 &&
            strcmp(disk->jobs[i]->user, user) == 0)
            *out = job_copy(disk->jobs[i]);
    return 0;
}

int store_next_number(struct store *store, uint64_t *number, struct error *err)
{
    (void)err;
    const struct disk *disk = store->disk;
    *number = disk->job_count ? disk->jobs[disk->job_count - 1]->number + 1 : 1;
    return 0;
}

int store_read_plan(struct store *store, const struct job *job, struct store_plan *out,
                    struct error *err)
{
    (void)err;
    const struct disk *disk = store->disk;
    *out = (struct store_plan){0};
    for (size_t i = 0; i < disk->plan_count; i++)
        if (disk->plans[i].number == job->number && disk->plans[i].epoch == job->epoch)
            *out = disk_copy_plan(&disk->plans[i].plan);
    return 0;
}

int store_read_corpus(struct store *store, const struct job *job, struct corpus **out,
                      struct error *err)
{
    (void)err;
    const struct disk *disk = store->disk;
    *out = NULL;
    for (size_t i = 0; i < disk->corpus_count && !*out; i++)
        if (disk->corpora[i].number == job->number)
            *out = disk_copy_corpus(job->number, disk->corpora[i].corpus).corpus;
    return 0;
}

uint64_t store_cluster(const struct store *store)
{
    return store->disk->cluster;
}

/* No user of the simulation asks for one: what is to be copied is a database. */
int store_copy(struct store *store, uint64_t now_ms, struct store_copy *out, struct error *err)
{
    (void)store, (void)now_ms, (void)out;
    return error_set(err, -ENOTSUP, "a simulated disk has no database");
}

void store_copy_finish(struct store_copy *copy)
{
    *copy = (struct store_copy){NULL, 0};
}

void store_plan_finish(struct store_plan *plan)
{
    free(plan->json);
    free(plan->candidates);
    free(plan->hashes);
    free(plan->compute_s);
    *plan = (struct store_plan){0};
}

int store_read_events(struct store *store, const struct store_query *query, store_event_cb callback,
                      void *data, struct error *err)
{
    (void)err;
    const struct disk *disk = store->disk;
    size_t first = (size_t)query->after;
    if (query->newest && disk->event_count > first + query->count_max)
        first = disk->event_count - query->count_max;
    for (size_t i = first, n = 0; i < disk->event_count && n < query->count_max; i++, n++) {
        Gimbal__Event *event =
            gimbal__event__unpack(NULL, disk->events[i].size, disk->events[i].bytes);
        int rc = callback(data, i + 1, event);
        gimbal__event__free_unpacked(event, NULL);
        if (rc < 0)
            break;
    }
    return 0;
}
