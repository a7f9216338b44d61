/* shared.h - is a folder the same one on all nodes of a job?
 *
 * Rank 0 writes a file of a random text there, and the others read it. Shards that lie on the
 * disks of several nodes would be no checkpoint for any of them. */
#ifndef WORKER_CHECKPOINT_SHARED_H
#define WORKER_CHECKPOINT_SHARED_H

#include "worker/collectives/collective.h"

#include <stdint.h>

struct shared_test {
    const char *folder; /* made where it is missing */
    uint64_t epoch;
    int rank, ranks;
    const char *node, *first; /* this rank's and rank 0's */
    const struct rendezvous *rendezvous;
};

/* Every rank calls it. -EXDEV: what rank 0 wrote is not here; the sentence names node and folder.
 * Errors of the folder, and of the rendezvous. */
int shared_check(const struct shared_test *test, struct error *err);

#endif
