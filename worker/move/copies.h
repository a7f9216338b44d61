/* copies.h - copies in other ranks' memory of what no other rank holds.
 *
 * Where a plan leaves a slice of the state on one node only, losing that node would lose the step.
 * So behind every few steps each rank copies its state, in its own memory, and sends what it alone
 * holds to its neighbour: the next rank on another node, or the next one. After the loss all go
 * back to the age of the copies. A plan whose replicas hold everything twice makes none.
 *
 * All ranks copy behind the same steps, and each is done before it goes into the next one. A step
 * is applied only when all take part in it; so whoever is a step further knows that the last
 * copies are complete, and until then the ones before them are kept: there are two of each. */
#ifndef WORKER_MOVE_COPIES_H
#define WORKER_MOVE_COPIES_H

#include "worker/move/move.h"

#define COPIES_SLOTS 2

struct copies;

/* After the ranks have met, for those of the plan. fabric: theirs. nodes: of each rank, its node's
 * name; lent for this call. *out is NULL where the plan needs none. -ENOBUFS with the size. */
int copies_create(const struct move *move, struct fabric *fabric, const char *const *nodes,
                  struct copies **out, struct error *err);
/* Copy the state, which is of this age, and came of a step with these metrics, NULL where they are
 * not known; all ranks together. Allocates nothing. Errors of the fabric, with which the copies
 * before these stay. */
int copies_take(struct copies *copies, const struct move_slice *state, const struct move_age *age,
                const float *metrics, struct error *err);
/* What is whole in them, as states that this rank holds, appended to out, which has room for
 * copies_room() more; lent. Returns how many. */
size_t copies_describe(const struct copies *copies, struct move_held *out);
size_t copies_room(const struct copies *copies);
/* Of host memory, over all slots. */
uint64_t copies_bytes(const struct copies *copies);
/* Accepts NULL. */
void copies_destroy(struct copies *copies);

#endif
