/* links.c - measures links by all-reduces of two sizes between threads of this process. */
#include "worker/probe/internal.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>

#define SMALL_ELEMENTS 16
#define LARGE_ELEMENTS ((size_t)1 << 20)
#define ROUNDS 12
/* Threads of one process cannot lose each other; the limit is for the worker, which waits for the
 * result. */
#define TIMEOUT_S 600

/* The least time of all rounds: disturbances only ever add time. */
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
    struct rendezvous rendezvous = meeting_rendezvous(probe->meeting);
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
        *link = fit_link(probe->ranks, (double)(LARGE_ELEMENTS * sizeof(float)), little, much);
        rc = probe_overlap(prober, group, overlap, err);
    }
    if (rc < 0 && fabric)
        probe->collectives->abort(fabric);
    probe->collectives->close(fabric);
    free(ranks);
    return rc;
}
