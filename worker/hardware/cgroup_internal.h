/* cgroup_internal.h - the groups that a process is in. */
#ifndef WORKER_HARDWARE_CGROUP_INTERNAL_H
#define WORKER_HARDWARE_CGROUP_INTERNAL_H

#include "worker/hardware/cgroup.h"

/* The group's path, from the line "0::/system.slice/x.service" or "4:cpu,memory:/x"; "" when there
 * is no such line, and of the root. The controller is "" of version 2. */
void cgroup_find(const char *self, const char *controller, char *group, int size);
/* To the group around it; false: it was the root. */
bool cgroup_go_up(char *group);

#endif
