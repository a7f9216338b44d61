/* decide.h - which state an epoch begins with. */
#ifndef WORKER_MOVE_DECIDE_H
#define WORKER_MOVE_DECIDE_H

#include "worker/move/parts.h"

/* The same on all ranks that have the same offers. *out has who gives what, of MOVE_MEMORY; it is
 * for parts_finish. */
struct move_decision move_decide(const struct offer *offers, int ranks, size_t tensor_count,
                                 const struct move_age *disk, struct parts *out);

#endif
