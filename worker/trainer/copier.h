/* copier.h - copies a rank's state (worker/move/copies.h) beside the step that follows it.
 *
 * Until a step is applied it only reads the state. So meanwhile a thread of the copier fetches the
 * state, copies it, and exchanges what ranks hold alone. A rank waits for that before it takes part
 * in the exchange after which the next step is applied: whoever is one step further still knows
 * that the newest copies are complete on all ranks. */
#ifndef WORKER_TRAINER_COPIER_H
#define WORKER_TRAINER_COPIER_H

#include "worker/interpreter/interpreter.h"
#include "worker/move/copies.h"

struct copier;

/* All pointers are lent until close. */
struct copier_config {
    struct interpreter *in;
    struct copies *copies;
    const struct state_slice *state; /* of `in`, on the host's side */
    struct trail *trail;             /* NULL: none */
};

/* Start its thread, which does nothing yet. -errno. */
int copier_open(const struct copier_config *config, struct copier **out, struct error *err);
/* Begin to copy the state as it is now. Collective, as copies_take is, but returns at once. What
 * was begun before must have been waited for. */
void copier_begin(struct copier *copier);
/* Wait until what was begun is complete: 0, also if nothing was; or the error that broke it off.
 * Accepts NULL. */
int copier_await(struct copier *copier, struct error *err);
/* The error with which copies failed, which have aborted their fabric then; 0: none has. Accepts
 * NULL. */
int copier_failed(struct copier *copier, struct error *err);
/* Stop its thread. Copies that are under way are waited for: if ranks are lost, the others' may
 * still become whole. They end at the latest when the fabric is aborted. Accepts NULL. */
void copier_close(struct copier *copier);

#endif
