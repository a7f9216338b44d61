/* decide.h - decides with which state an epoch begins. */
#ifndef WORKER_MOVE_DECIDE_H
#define WORKER_MOVE_DECIDE_H

#include "worker/move/parts.h"

/* A pure function, so all ranks with the same offers decide the same. `disk` is the age of the
 * newest checkpoint, or NULL. *out must be empty; for MOVE_MEMORY it receives who gives what, for
 * parts_finish. */
struct move_decision move_decide(const struct offer *offers, int ranks, size_t tensor_count,
                                 const struct move_age *disk, struct parts *out);

#endif
