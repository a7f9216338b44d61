/* hosts.c - chooses who measures between hosts, and over which fabrics. */
#include "worker/executor/hosts.h"

#include "common/base/memory.h"
#include "worker/executor/telemetry.h"
#include "worker/probe/host_links.h"

#include <stdlib.h>
#include <string.h>

/* The first rank of each host; the caller frees them. */
static int *lead_hosts(const struct work *work, int *count)
{
    const Gimbal__Assignment *assignment = work->assignment;
    int ranks = plan_ranks(work->plan);
    int *leaders = xcalloc((size_t)ranks, sizeof *leaders);
    *count = 0;
    for (int rank = 0; rank < ranks && rank < (int)assignment->n_ranks; rank++) {
        const char *host = assignment->ranks[rank]->host_address;
        int i = 0;
        while (i < *count && strcmp(assignment->ranks[leaders[i]]->host_address, host) != 0)
            i++;
        if (i == *count)
            leaders[(*count)++] = rank;
    }
    return leaders;
}

/* Whether this rank is one of them, and there are others. */
static bool leads(const struct links *links)
{
    int i = 0;
    while (i < links->count && links->ranks[i] != links->rank)
        i++;
    return i < links->count && links->count > 1;
}

/* Device links are measured over a separate fabric, so that the device memory its communicators
 * take is given back before the rank reserves what its plan says. */
static int measure_devices(struct links *links, const struct rank *rank,
                           const struct fabrics *fabrics, struct error *err)
{
    struct joined again;
    int rc = fabrics_join_again(fabrics, rank, &again, err);
    if (rc == 0) {
        links->library = again.library;
        links->fabric = again.fabric;
        links->device = rank->work->device;
        rc = links_measure(links, err);
    }
    fabrics_part(rank->work, &again);
    return rc;
}

int hosts_measure(const struct rank *rank, const struct fabrics *fabrics, struct error *err)
{
    const struct work *work = rank->work;
    if (!work->assignment || !work->assignment->measures_links || !fabrics->host.fabric)
        return 0;
    struct links links = {.library = fabrics->host.library,
                          .fabric = fabrics->host.fabric,
                          .rank = rank->rank,
                          .told_cb = telemetry_link,
                          .data = work->session};
    int *leaders = lead_hosts(work, &links.count), rc = 0;
    links.ranks = leaders;
    if (leads(&links)) {
        rc = links_measure(&links, err);
        if (rc == 0 && fabrics->program.fabric != fabrics->host.fabric)
            rc = measure_devices(&links, rank, fabrics, err);
    }
    free(leaders);
    return rc;
}
