/* claim.h - makes sure that a state folder has one worker per name.
 *
 * Two workers that keep the same state would replace each other forever. So a worker holds a lock
 * on a file of its name in the folder for as long as it lives. Children do not inherit the lock,
 * and the kernel releases it when the process ends, however that happens. */
#ifndef WORKER_DAEMON_CLAIM_H
#define WORKER_DAEMON_CLAIM_H

#include "common/base/error.h"

/* Create the folder if it is missing, and lock the name in it; release *out with claim_close().
 * -EBUSY: another worker holds it; otherwise -errno. If the file system has no locks, a warning is
 * logged and the name counts as locked. */
int claim_open(const char *state, const char *node, int *out, struct error *err);
/* Release the lock. Accepts -1. The file stays, because another worker may have opened it
 * already. */
void claim_close(int claim);

#endif
