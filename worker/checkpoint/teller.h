/* teller.h - what ranks tell each other about their shards, and what becomes of it: a thread with a
 * queue.
 *
 * Telling takes a coordinator, writing does not: while none is in reach, shards are written and
 * wait here, in their order, and training goes on. */
#ifndef WORKER_CHECKPOINT_TELLER_H
#define WORKER_CHECKPOINT_TELLER_H

#include "worker/checkpoint/saver.h"

struct teller;

/* config and root are lent until it is destroyed. */
struct teller *teller_create(const struct saver_config *config, const char *root);
/* This rank's shard of `step` is in `folder`; or rc < 0 and why there is none. Copies what it
 * takes. */
void teller_add(struct teller *teller, uint64_t step, const char *folder, double waited_s,
                const struct manifest_shard *shard, int rc, const struct error *why);
/* 0, or how it ended: what it waited for was cancelled. */
int teller_failed(struct teller *teller, struct error *err);
/* Until all that was added is told, and listed. */
int teller_finish(struct teller *teller, struct error *err);
/* Rank 0: the newest step whose checkpoint is listed; 0: none is. */
uint64_t teller_listed(struct teller *teller);
/* What is not told then never will be. Accepts NULL. */
void teller_destroy(struct teller *teller);

#endif
