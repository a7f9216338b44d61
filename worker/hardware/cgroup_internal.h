/* cgroup_internal.h - finds a process's control groups; for this folder only. */
#ifndef WORKER_HARDWARE_CGROUP_INTERNAL_H
#define WORKER_HARDWARE_CGROUP_INTERNAL_H

#include "worker/hardware/cgroup.h"

/* The path of the group with this controller, from a line such as "0::/system.slice/x.service" or
 * "4:cpu,memory:/x" of `self`. It is "" for the root, or if there is no such line. The controller
 * of cgroup v2 is "". */
void cgroup_find(const char *self, const char *controller, char *group, int size);
/* Change the path to that of the parent; false: it was the root. */
bool cgroup_go_up(char *group);

#endif
