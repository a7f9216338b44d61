/* hosts.h - the hosts of a job: before its first step, what is between them, if the coordinator
 * does not know it yet. */
#ifndef WORKER_EXECUTOR_HOSTS_H
#define WORKER_EXECUTOR_HOSTS_H

#include "worker/executor/fabrics.h"

/* Of what lies in the hosts' memory, as states and their copies do; and of what programs exchange,
 * where that lies in memory of devices. Every rank that has joined calls it; those that lead their
 * hosts measure, and tell. Errors of links_measure. */
int hosts_measure(const struct rank *rank, const struct fabrics *fabrics, struct error *err);

#endif
