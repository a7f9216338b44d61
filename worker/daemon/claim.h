/* claim.h - one worker for each name in a state folder.
 *
 * Two workers that keep the same state would take each other's place for ever. So a worker holds a
 * lock on a file of its name there as long as it lives; its children do not inherit it, and the
 * kernel lets go of it with the process, however that ends. */
#ifndef WORKER_DAEMON_CLAIM_H
#define WORKER_DAEMON_CLAIM_H

#include "common/base/error.h"

/* Make the folder where it is missing, and take the name in it: *out is for claim_close(). -EBUSY:
 * another worker has it; -errno. Where the file system has no locks it is said, and nobody is kept
 * out. */
int claim_open(const char *state, const char *node, int *out, struct error *err);
/* Accepts -1. The file stays: another worker may hold it already. */
void claim_close(int claim);

#endif
