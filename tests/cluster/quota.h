/* quota.h - so much of a processor's time for one process and no more, by a control group of its
 * own: version 1 or 2, where this machine lets us make one. */
#ifndef TESTS_CLUSTER_QUOTA_H
#define TESTS_CLUSTER_QUOTA_H

#include <stdbool.h>
#include <sys/types.h>

/* Make the group; NULL, or why there can be none. */
const char *quota_open(void);
/* All threads of the process together, from now on: `processors` of a processor's time, below 1. */
void quota_limit(pid_t pid, double processors);
/* Back to where processes are that nobody limits. */
void quota_lift(pid_t pid);
/* The group goes; false: somebody is in it. */
bool quota_close(void);

#endif
