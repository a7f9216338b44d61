/* probe_links.c - all-reduces of two sizes, by threads that meet in this process. */
#include "worker/executor/probe_internal.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_ELEMENTS 16
#define LARGE_ELEMENTS ((size_t)1 << 20)
#define ROUNDS 12
/* Threads of one process lose nobody: it is the worker that has no patience for ever. */
#define TIMEOUT_S 600

static int put(void *context, const char *key, const void *value, size_t size, struct error *err)
{
    struct probe *probe = context;
    struct entry *entry = xcalloc(1, sizeof *entry);
    (void)err;
    entry->key = xstrdup(key);
    entry->value = xcalloc(1, size);
    memcpy(entry->value, value, size);
    entry->size = size;
    pthread_mutex_lock(&probe->lock);
    entry->next = probe->entries;
    probe->entries = entry;
    pthread_cond_broadcast(&probe->changed);
    pthread_mutex_unlock(&probe->lock);
    return 0;
}

static int get(void *context, const char *key, void *value, size_t *size, struct error *err)
{
    struct probe *probe = context;
    const struct entry *entry = NULL;
    (void)err;
    pthread_mutex_lock(&probe->lock);
    while (!entry) {
        for (entry = probe->entries; entry && strcmp(entry->key, key) != 0;)
            entry = entry->next;
        if (!entry)
            pthread_cond_wait(&probe->changed, &probe->lock);
    }
    *size = entry->size < *size ? entry->size : *size;
    memcpy(value, entry->value, *size);
    pthread_mutex_unlock(&probe->lock);
    return 0;
}

void probe_forget(struct probe *probe)
{
    while (probe->entries) {
        struct entry *entry = probe->entries;
        probe->entries = entry->next;
        free(entry->key);
        free(entry->value);
        free(entry);
    }
}

/* The best of some rounds: others disturb, nothing helps. */
static int time_all_reduce(struct probe *probe, struct fabric_group *group, size_t count,
                           double *out, struct error *err)
{
    float *data = xcalloc(count, sizeof *data);
    int rc = 0;
    *out = INFINITY;
    for (int round = 0; round < ROUNDS && rc == 0; round++) {
        double begin = probe_now();
        rc = probe->collectives->all_reduce(group, ELEMENT_F32, data, count, REDUCTION_SUM, err);
        *out = fmin(*out, probe_now() - begin);
    }
    free(data);
    return rc;
}

int probe_links(struct prober *prober, struct profile_link *link, double *overlap,
                struct error *err)
{
    struct probe *probe = prober->probe;
    struct rendezvous rendezvous = {probe, put, get};
    struct fabric_config config = {.rank = prober->index,
                                   .count = probe->ranks,
                                   .timeout_s = TIMEOUT_S,
                                   .rendezvous = &rendezvous,
                                   .shared = probe->hub};
    struct fabric *fabric = NULL;
    struct fabric_group *group;
    int *ranks = xcalloc((size_t)probe->ranks, sizeof *ranks);
    double little, much;
    for (int i = 0; i < probe->ranks; i++)
        ranks[i] = i;
    int rc = probe->collectives->open(&config, &fabric, err);
    if (rc == 0)
        rc = probe->collectives->group(fabric, ranks, probe->ranks, &group, err);
    if (rc == 0)
        rc = time_all_reduce(probe, group, SMALL_ELEMENTS, &little, err);
    if (rc == 0)
        rc = time_all_reduce(probe, group, LARGE_ELEMENTS, &much, err);
    if (rc == 0) {
        double steps = 2.0 * (probe->ranks - 1);
        double bytes = steps / probe->ranks * (double)LARGE_ELEMENTS * sizeof(float);
        link->latency_s = little / steps;
        link->seconds_per_byte = fmax(much - little, 0) / bytes;
        rc = probe_overlap(prober, group, overlap, err);
    }
    if (rc < 0 && fabric)
        probe->collectives->abort(fabric);
    probe->collectives->close(fabric);
    free(ranks);
    return rc;
}
