/* memory_group.h - so much memory and no more for some processes, by a control group of their own:
 * version 1 or 2, where this machine lets us make one. */
#ifndef TESTS_CLUSTER_MEMORY_GROUP_H
#define TESTS_CLUSTER_MEMORY_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Make the group, without a limit; NULL, or why there can be none. */
const char *memory_group_open(void);
/* The process, and the children that it has from now on. */
void memory_group_take(pid_t pid);
/* Who wants more is killed. */
void memory_group_limit(uint64_t bytes);
/* The group goes; false: somebody is in it. */
bool memory_group_close(void);

#endif
