/* host_links.h - what is between the hosts of a job, measured before its first step by the ranks
 * themselves, over the library that they will use, with data where they will have it.
 *
 * Of each host one rank takes part: first every second pair of neighbours, then the others, so that
 * no rank is in two at a time. */
#ifndef WORKER_PROBE_HOST_LINKS_H
#define WORKER_PROBE_HOST_LINKS_H

#include "common/profile/profile.h"
#include "worker/collectives/collective.h"
#include "worker/kernels/kernels.h"

struct links {
    const struct collectives *library;
    struct fabric *fabric;
    /* In whose memory the data lies, which the library has to know; NULL: in the host's. */
    const struct device *device;
    int rank;
    const int *ranks; /* one of each host */
    int count;
    /* Told to the lower rank of a pair. */
    void (*told_cb)(void *data, int rank, int peer, bool in_devices,
                    const struct profile_link *link);
    void *data;
};

/* All of links->ranks call it, others may. The calling thread is in no lane. Errors of the fabric,
 * and of the device: -ENOMEM with the sizes where it has no room. It has as much as before when
 * this returns, but for what the fabric holds. */
int links_measure(const struct links *links, struct error *err);

#endif
