/* devices.h - which device is meant, and who holds it. */
#ifndef COORDINATOR_MEMBERSHIP_DEVICES_H
#define COORDINATOR_MEMBERSHIP_DEVICES_H

#include "common/hardware/hardware.h"
#include "common/profile/link.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HOLDER_SIZE 32 /* of a job's id, with its final NUL */

/* One device of one life of a worker: a restarted worker's devices are others. */
struct device_ref {
    char worker[HARDWARE_NAME_SIZE];
    uint64_t instance;
    unsigned index;
};

/* The same device of the same life. */
static inline bool device_ref_equal(const struct device_ref *a, const struct device_ref *b)
{
    return a->instance == b->instance && a->index == b->index && strcmp(a->worker, b->worker) == 0;
}

struct profile;

/* A device of a worker that is not dead, as the scheduler sees it. Pointers are lent until the
 * next change of membership. */
struct device_view {
    struct device_ref ref;
    const char *host;
    const struct hardware_device *device;
    /* Its speed by a cluster file; NULL: the device's own word counts. */
    const struct profile *told;
    double slowdown; /* so many times as long it takes; 0: as said */
    /* To other hosts, as it was measured: of what programs exchange, and of what lies in the host's
     * memory; zeroed: as its profile has it. */
    struct profile_link network, host_network;
    uint64_t memory_max; /* bytes that a plan may have there; 0: all that the device has */
    const char *holder;  /* the job's id; "" when it is free */
    bool grantable;      /* its worker is neither suspect nor draining */
    bool draining;       /* it will not come back to the jobs that wait */
};

#endif
