/* links.h - measures links: the time of an all-reduce, wherever its data lies, and the network
 * between the hosts of a job, before its first step: by the ranks themselves, over the library that
 * they will use, and with data in the kind of memory they will use.
 *
 * One rank per host takes part. Every second pair of neighbours measures first, then the others, so
 * that no rank is in two pairs at a time. */
#ifndef WORKER_PROBE_LINKS_H
#define WORKER_PROBE_LINKS_H

#include "common/profile/profile.h"
#include "worker/collectives/collective.h"
#include "worker/kernels/kernels.h"

/* An all-reduce that is to be timed. All pointers are lent. */
struct links_exchange {
    const struct collectives *library;
    struct fabric *fabric;
    struct fabric_group *group;
    const struct accelerator *accelerator; /* NULL: the data is in host memory */
    void *data;
};

/* Sum `count` elements so many times. *best becomes the least time of these rounds and itself:
 * disturbances only ever add time. */
int links_time(const struct links_exchange *exchange, size_t count, int rounds, double *best,
               struct error *err);

/* All pointers are lent. */
struct links {
    const struct collectives *library;
    struct fabric *fabric;
    /* The device in whose memory the data lies, which the library has to support; NULL: host
     * memory. */
    const struct device *device;
    int rank;
    const int *ranks; /* one per host */
    int count;
    /* Called on the lower rank of a pair, with the result. */
    void (*told_cb)(void *data, int rank, int peer, bool in_devices,
                    const struct hardware_link *link);
    void *data;
};

/* Collective over links->ranks; other ranks may call it too, and do nothing. The calling thread
 * must not have entered a stream. Errors of the fabric and of the device, with -ENOMEM and the
 * sizes if it lacks memory; the fabric is then aborted. All device memory is given back, except
 * what the fabric holds. */
int links_measure(const struct links *links, struct error *err);

#endif
