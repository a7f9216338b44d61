/* hosts.h - which of the request's devices share a host. Devices of one host are adjacent. */
#ifndef COORDINATOR_PLANNER_COSTS_HOSTS_H
#define COORDINATOR_PLANNER_COSTS_HOSTS_H

#include "coordinator/planner/planner.h"

bool hosts_same(const struct planner_device *a, const struct planner_device *b);
/* The number of these devices on each of their hosts; 0: it is not the same on all. */
int hosts_share(const struct planner_device *devices, int count);

#endif
