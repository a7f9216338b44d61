/* host_links.h - what is between the hosts of a job, measured before its first step by the ranks
 * themselves, over the library that they will use.
 *
 * Of each host one rank takes part: first every second pair of neighbours, then the others, so that
 * no rank is in two at a time. */
#ifndef WORKER_PROBE_HOST_LINKS_H
#define WORKER_PROBE_HOST_LINKS_H

#include "common/profile/profile.h"
#include "worker/collectives/collective.h"

struct links {
    const struct collectives *library; /* of data in the host's memory */
    struct fabric *fabric;
    int rank;
    const int *ranks; /* one of each host */
    int count;
    /* Told to the lower rank of a pair. */
    void (*told_cb)(void *data, int rank, int peer, const struct profile_link *link);
    void *data;
};

/* All of links->ranks call it, others may. Errors of the fabric. */
int links_measure(const struct links *links, struct error *err);

#endif
