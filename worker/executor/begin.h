/* begin.h - the state that a rank begins an epoch with. */
#ifndef WORKER_EXECUTOR_BEGIN_H
#define WORKER_EXECUTOR_BEGIN_H

#include "worker/executor/trainer.h"

/* All ranks together. *age is of the state that is then complete. */
int begin_state(const struct trainer_config *config, struct interpreter *in,
                struct beginning *beginning, struct move_age *age, struct error *err);

#endif
