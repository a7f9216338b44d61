/* cores.h - divides a set of cores into pieces: for the workers of one host, and for the CPU
 * devices of one worker.
 *
 * Cores are taken in the order of the topology, so that a piece's cores are neighbours. If there
 * are at least as many pieces as NUMA nodes, a piece never spans nodes; otherwise it consists of
 * whole nodes. That may make pieces unequal, which the planner can handle. */
#ifndef WORKER_HARDWARE_CORES_H
#define WORKER_HARDWARE_CORES_H

#include "common/base/error.h"

#include <hwloc.h>
#include <stdbool.h>

/* The number of cores with at least one processing unit in the set. */
unsigned cores_count(hwloc_topology_t topology, hwloc_const_cpuset_t set);

/* Divide the cores of `within` into `count` > 0 pieces, and write `count` new sets to out, which
 * the caller frees. If there are fewer cores than pieces, piece k is core k modulo the number of
 * cores, and *shared is true. -EINVAL: `within` has no core. */
int cores_split(hwloc_topology_t topology, hwloc_const_cpuset_t within, unsigned count,
                hwloc_cpuset_t *out, bool *shared, struct error *err);

#endif
