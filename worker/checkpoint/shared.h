/* shared.h - checks that a folder is the same on all nodes of a job.
 *
 * Rank 0 writes a file with a random text, and the others read it. Shards on the disks of several
 * nodes would not be a checkpoint for any of them. */
#ifndef WORKER_CHECKPOINT_SHARED_H
#define WORKER_CHECKPOINT_SHARED_H

#include "worker/collectives/collective.h"

#include <stdint.h>

struct shared_test {
    const char *folder; /* created if it is missing */
    uint64_t epoch;
    int rank, ranks;
    const char *node, *first; /* names of this rank's node, and of rank 0's */
    const struct rendezvous *rendezvous;
};

/* Collective over all ranks. -EXDEV: this rank does not see what rank 0 wrote; err names node and
 * folder. Otherwise errors of the folder and of the rendezvous. */
int shared_check(const struct shared_test *test, struct error *err);

#endif
