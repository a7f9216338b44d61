/* teller.h - a thread with a queue, which exchanges between ranks what they know of their shards,
 * and completes checkpoints.
 *
 * This needs a coordinator, while writing shards does not. So while none is reachable, shards are
 * still written, their reports wait here in order, and training goes on. */
#ifndef WORKER_CHECKPOINT_TELLER_H
#define WORKER_CHECKPOINT_TELLER_H

#include "worker/checkpoint/saver.h"

struct teller;

/* The arguments are lent until teller_destroy. */
struct teller *teller_create(const struct saver_config *config, const char *root);
/* Add this rank's shard of `step`, which lies in `folder`; or rc < 0 and the reason why there is
 * none. Arguments are copied. Does not block. */
void teller_add(struct teller *teller, uint64_t step, const char *folder, double waited_s,
                const struct manifest_shard *shard, int rc, const struct error *why);
/* 0, or the error with which the thread has ended, because what it waited for was cancelled. */
int teller_failed(struct teller *teller, struct error *err);
/* Block until everything that was added has been reported and listed. Errors as teller_failed. */
int teller_finish(struct teller *teller, struct error *err);
/* Rank 0: the newest step whose checkpoint is listed; 0: none. */
uint64_t teller_listed(struct teller *teller);
/* End the thread; what is not reported by then never will be. Accepts NULL. */
void teller_destroy(struct teller *teller);

#endif
