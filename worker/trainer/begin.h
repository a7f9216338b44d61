/* begin.h - the state that a rank begins an epoch with. */
#ifndef WORKER_TRAINER_BEGIN_H
#define WORKER_TRAINER_BEGIN_H

#include "worker/move/copies.h"
#include "worker/trainer/trainer.h"

/* What becomes of it. */
struct begun {
    struct beginning told;
    struct move_age age; /* of the state that is then complete */
    bool skipped;        /* its last step was not finite, as far as is known */
    /* Yours: where it is, and copies of it; NULL: the plan needs none, or nothing is kept. */
    struct move_slice *slices;
    struct copies *copies;
};

/* A rank that only gives: all ranks together. */
int begin_give(const struct trainer_config *config, struct beginning *beginning, struct error *err);
/* The others. */
int begin_state(const struct trainer_config *config, struct interpreter *in, struct begun *begun,
                struct error *err);

#endif
