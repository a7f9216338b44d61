/* hosts.h - measures the network between the hosts of a job before its first step, if the
 * coordinator does not know it yet. */
#ifndef WORKER_EXECUTOR_HOSTS_H
#define WORKER_EXECUTOR_HOSTS_H

#include "worker/executor/fabrics.h"

/* Measure between hosts, for data in host memory (states and their copies) and, if programs
 * exchange data in device memory, for that too. Every rank of the plan calls this once it has
 * joined; one rank per host takes part, and reports the results. Errors of links_measure. */
int hosts_measure(const struct rank *rank, const struct fabrics *fabrics, struct error *err);

#endif
