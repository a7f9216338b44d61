/* leftovers.h - what a cluster has left behind: processes, files, shared memory. */
#ifndef COORDINATOR_CLI_DEMO_LEFTOVERS_H
#define COORDINATOR_CLI_DEMO_LEFTOVERS_H

#include <stdint.h>

/* Our children are taken to be gone: whatever child we still have is an orphan of theirs. It has
 * a moment to end, else it is named here and killed. In the folder only *.log, job.yaml and the
 * coordinator's state may be; in /dev/shm nothing of ours that is called gimbal. Lines, the
 * caller's; NULL: nothing. */
char *leftovers_find(const char *folder);
/* Executors of anybody's whose worker, or command, is gone, and that have not ended within a
 * moment: "process 4711, gimbal-executor", a line each, the caller's; NULL: none. */
char *leftovers_orphans(void);
/* Remove the folder with all its files; what cannot be removed is added to *left. */
void leftovers_remove(const char *folder, char **left);
/* The highest peak of resident memory among our descendants of that name, or 0. */
uint64_t leftovers_resident_bytes(const char *name);

#endif
