/* begin.h - finds or creates the state with which a rank begins an epoch.
 *
 * The state comes, in this order, from what ranks have kept in memory, from a checkpoint, or is
 * fresh (pretrained weights or the seed). */
#ifndef WORKER_TRAINER_BEGIN_H
#define WORKER_TRAINER_BEGIN_H

#include "worker/move/copies.h"
#include "worker/trainer/trainer.h"

/* What begin_state found and made. */
struct begun {
    struct beginning told;
    struct move_age age; /* age of the state, once it is complete */
    bool skipped;        /* the last step of that state was not finite, as far as is known */
    /* Where the state lies, and copies of it; the caller frees both. NULL if the plan needs no
     * copies or nothing is kept. */
    struct state_slice *slices;
    struct copies *copies;
};

/* For a rank that only gives what it has kept. Collective over all ranks, together with
 * begin_state. */
int begin_give(const struct trainer_config *config, struct beginning *beginning, struct error *err);
/* For a rank of the plan: complete the state in `in`, and store it on the device. Collective if
 * ranks keep states. -EBADMSG: the checkpoint cannot be loaded. */
int begin_state(const struct trainer_config *config, struct interpreter *in, struct begun *begun,
                struct error *err);

#endif
