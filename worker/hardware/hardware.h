/* hardware.h - makes a worker's report of what this machine has, as hwloc sees it. */
#ifndef WORKER_HARDWARE_HARDWARE_H
#define WORKER_HARDWARE_HARDWARE_H

#include "common/base/error.h"
#include "common/hardware/hardware.h"

#include <hwloc.h>
#include <stdint.h>

/* Which part of the machine belongs to this worker, and how it is offered. */
struct hardware_options {
    const char *node;      /* name of the worker */
    const char *host;      /* hardware_host() */
    const char *cpuset;    /* "0-3,8"; NULL: every core that the process may use */
    unsigned share_index;  /* of those, share number share_index ... */
    unsigned share_count;  /* ... out of this many; 0 counts as 1 */
    unsigned devices;      /* CPU devices to divide that into; 0: the caller adds GPUs itself */
    uint64_t memory_bytes; /* at most; 0: the memory that goes with the cores */
    uint64_t limit_bytes;  /* for all workers here (cgroup_memory_limit); 0: all of the memory */
};

/* Fill in a report from a loaded topology: this machine's, or any other for planning and tests.
 * Memory goes with cores: of each NUMA node, the worker gets the part that its cores are of the
 * node's cores. *out is written on success only, and is complete unless `devices` is 0; the caller
 * owns it. -EINVAL: the options do not fit the machine, err says what would. */
int hardware_detect(hwloc_topology_t topology, const struct hardware_options *options,
                    struct hardware_report **out, struct error *err);

/* Devices beside the cores, as an executor has found them. */
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

/* Append them to the report, with memory 0 for the time being. Each gets a share of those of the
 * worker's cores that are next to its place on the bus; devices with the same cores share these. */
int hardware_add_found(hwloc_topology_t topology, struct hardware_report *report,
                       const struct hardware_found *found, struct error *err);
void hardware_found_finish(struct hardware_found *found); /* accepts a zeroed one */

/* Check that these are cores that the process may use. -EINVAL as in hardware_detect. */
int hardware_check_cpuset(hwloc_topology_t topology, const char *cpuset, struct error *err);

/* How many CPU devices there are per core, of this worker and of those that share the host with it
 * by the same options; at least 1. */
double hardware_crowd(hwloc_topology_t topology, const struct hardware_options *options);

/* Load the topology of this machine, restricted to the cores that this process may use. The caller
 * destroys it with hwloc_topology_destroy. */
int hardware_topology_open(hwloc_topology_t *out, struct error *err);

/* The identity of the running machine: the kernel's boot id, which containers on the same host
 * share, otherwise the machine id. The caller frees it. -ENOENT: there is neither. */
int hardware_host(char **out, struct error *err);

#endif
