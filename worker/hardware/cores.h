/* cores.h - cutting a set of cores into pieces: for the workers of one host, and for the CPU
 * devices of one worker.
 *
 * Cores are taken in the topology's order, so that a piece's cores are neighbours. A piece never
 * straddles memory (NUMA) nodes when there are at least as many pieces as nodes; otherwise it is
 * made of whole nodes. That may make pieces unequal, which the planner knows how to use. */
#ifndef WORKER_HARDWARE_CORES_H
#define WORKER_HARDWARE_CORES_H

#include "common/base/error.h"

#include <hwloc.h>
#include <stdbool.h>

/* How many cores have at least one processing unit in the set. */
unsigned cores_count(hwloc_topology_t topology, hwloc_const_cpuset_t set);

/* Cut the cores of `within` into `count` > 0 pieces and write `count` new sets to out, which the
 * caller frees. With fewer cores than pieces, piece k is core k modulo the cores and *shared is
 * true. -EINVAL when there is no core in `within`. */
int cores_split(hwloc_topology_t topology, hwloc_const_cpuset_t within, unsigned count,
                hwloc_cpuset_t *out, bool *shared, struct error *err);

#endif
