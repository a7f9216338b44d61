/* leftovers.h - finds what a cluster has left behind: processes, files, shared memory. */
#ifndef COORDINATOR_CLI_LEFTOVERS_H
#define COORDINATOR_CLI_LEFTOVERS_H

#include <stdint.h>

/* Our children must have ended, so any remaining child is an orphan of theirs. It gets a moment to
 * end; otherwise it is reported here and killed. The folder may contain only *.log, job.yaml and
 * the coordinator's state; /dev/shm nothing of ours named gimbal. Returns lines owned by the
 * caller; NULL: nothing. */
char *leftovers_find(const char *folder);
/* Executors, of anybody, whose worker or command is gone and that have not ended within a moment:
 * one line each, as in "process 4711, gimbal-executor"; owned by the caller. NULL: none. */
char *leftovers_orphans(void);
/* Remove the folder with all its files; what cannot be removed is appended to *left. */
void leftovers_remove(const char *folder, char **left);
/* The highest peak of resident memory among our descendants with this name; 0 if there are none. */
uint64_t leftovers_resident_bytes(const char *name);

#endif
