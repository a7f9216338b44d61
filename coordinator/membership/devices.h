/* devices.h - identifies devices of the cluster and tells who holds them. */
#ifndef COORDINATOR_MEMBERSHIP_DEVICES_H
#define COORDINATOR_MEMBERSHIP_DEVICES_H

#include "common/hardware/hardware.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HOLDER_SIZE 32 /* of a job's id, including the final NUL */

/* One device during one life of a worker: after a restart the worker's devices are different
 * ones. */
struct device_ref {
    char worker[HARDWARE_NAME_SIZE];
    uint64_t instance;
    unsigned index;
};

/* Whether both refer to the same device of the same life. */
static inline bool device_ref_equal(const struct device_ref *a, const struct device_ref *b)
{
    return a->instance == b->instance && a->index == b->index && strcmp(a->worker, b->worker) == 0;
}

/* Devices of about the same speed share a class, whatever their probes measured exactly: the times
 * per flop of adjacent classes have this ratio. 0 is the class of the fastest, whose pace is least;
 * paces are seconds per flop. */
#define SPEED_STEP 1.5
static inline int speed_class(double pace, double least)
{
    return (int)lround(log(pace / least) / log(SPEED_STEP));
}

struct profile;

/* A device of a worker that is not dead, as the scheduler sees it. Pointers are lent until
 * membership changes. */
struct device_view {
    struct device_ref ref;
    const char *host;
    const struct hardware_device *device;
    /* its speed according to a cluster file; NULL: what the device itself reports counts */
    const struct profile *told;
    double slowdown; /* measured slowdown as a factor of its time; 0: none */
    /* Measured links to other hosts, for what programs exchange and for data in host memory. All
     * zero: as in its profile. */
    struct hardware_link network, host_network;
    unsigned network_cards; /* of its host; 0: unknown */
    uint64_t host_bytes;    /* an equal part of its node's memory; 0: unknown */
    uint64_t memory_max;    /* bytes that a plan may use there; 0: all */
    const char *holder;     /* id of the job that holds it; "" if it is free */
    /* Its worker says that there are more devices than cores, so it may share them. busy: ranks
     * that compute on them now, on average over them: of other jobs, or, if the device is free, of
     * all.
     */
    bool crowded;
    double busy;
    bool grantable; /* its worker is neither suspect nor draining */
    bool draining;  /* it will not become available to waiting jobs */
};

#endif
