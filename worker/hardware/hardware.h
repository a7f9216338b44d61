/* hardware.h - what this machine has, as hwloc sees it, made into a worker's report. */
#ifndef WORKER_HARDWARE_HARDWARE_H
#define WORKER_HARDWARE_HARDWARE_H

#include "common/base/error.h"
#include "common/hardware/hardware.h"

#include <hwloc.h>
#include <stdint.h>

/* Which part of the machine is this worker's, and how it is offered. */
struct hardware_options {
    const char *node;      /* the worker's name */
    const char *host;      /* hardware_host() */
    const char *cpuset;    /* "0-3,8"; NULL: every core that the process may use */
    unsigned share_index;  /* of that, the share_index-th ... */
    unsigned share_count;  /* ... of so many shares; 0 is 1 */
    unsigned devices;      /* CPU devices to cut it into; 0 for a worker that adds GPUs itself */
    uint64_t memory_bytes; /* at most so much; 0: the memory that goes with the cores */
    uint64_t limit_bytes;  /* of all workers here (cgroup_memory_limit); 0: what the nodes have */
};

/* Fill a report from a loaded topology: this machine's, or any other for planning and tests.
 * Memory goes with cores: of each memory node, the part that the worker's cores are of the
 * node's. -EINVAL when the options do not fit the machine, with what would. The caller owns
 * *out, which is written on success only and is complete unless `devices` is 0. */
int hardware_detect(hwloc_topology_t topology, const struct hardware_options *options,
                    struct hardware_report **out, struct error *err);

/* Devices beside the cores that an executor has seen. */
struct hardware_seen {
    char *id, *name, *place; /* as in struct hardware_device */
};
struct hardware_found {
    struct hardware_seen *seen;
    size_t count;
    char *reason; /* why there are none */
    char *collectives,
        *collectives_reason; /* by what they exchange data; why it cannot be loaded */
};

/* Append them to the report, with the memory of none yet. Each has the cores of this worker that
 * are next to its place on the bus, as its share of them with the others there. */
int hardware_add_found(hwloc_topology_t topology, struct hardware_report *report,
                       const struct hardware_found *found, struct error *err);
void hardware_found_finish(struct hardware_found *found); /* accepts a zeroed one */

/* Are those cores that the process may use? -EINVAL as of hardware_detect. */
int hardware_check_cpuset(hwloc_topology_t topology, const char *cpuset, struct error *err);

/* How many CPU devices there are for each core, of this worker and of those that share the host
 * with it by the same options; 1 when there are cores enough. */
double hardware_crowd(hwloc_topology_t topology, const struct hardware_options *options);

/* Load the live machine's topology, restricted to the cores that this process may use; the
 * caller destroys it (hwloc_topology_destroy). */
int hardware_topology_open(hwloc_topology_t *out, struct error *err);

/* Name the running machine: the kernel's boot id, which containers on one host share, else the
 * machine id. The caller frees it. */
int hardware_host(char **out, struct error *err);

#endif
