/* hosts.h - which of the request's devices are of one host; those of one lie next to each other. */
#ifndef COORDINATOR_PLANNER_COSTS_HOSTS_H
#define COORDINATOR_PLANNER_COSTS_HOSTS_H

#include "coordinator/planner/planner.h"

bool hosts_same(const struct planner_device *a, const struct planner_device *b);
/* How many of these devices each of their hosts has; 0: not the same number. */
int hosts_share(const struct planner_device *devices, int count);

#endif
