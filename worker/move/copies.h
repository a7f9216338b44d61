/* copies.h - copies in other ranks' memory of what no other rank holds.
 *
 * Where a plan leaves a slice of the state on one node only, losing that node would lose the step.
 * So behind every few steps each rank copies its state, in its own memory, and sends what it alone
 * holds to its neighbour: the next rank on another node, or the next one. After the loss all go
 * back to the age of the copies. A plan whose replicas hold everything twice makes none.
 *
 * All ranks copy behind the same steps, and each is done before it goes into the next one. A step
 * is applied only when all take part in it; so whoever is a step further knows that the last
 * copies are complete, and until then the ones before them are kept: there are two of each.
 *
 * They lie in the estate, a holding for each of the two, as states do: what a killed executor was
 * trusted with is not lost with it, and its successor offers that as if it were its own. */
#ifndef WORKER_MOVE_COPIES_H
#define WORKER_MOVE_COPIES_H

#include "worker/estate/estate.h"
#include "worker/move/move.h"

struct copies;

struct copies_config {
    struct fabric *fabric;    /* of the plan's ranks */
    const char *const *nodes; /* of each rank, its node's name; lent for copies_create */
    struct estate *estate;    /* outlives them */
    uint64_t epoch;           /* that of the plan */
};

/* After the ranks have met, for those of the plan. *out is NULL where the plan needs none. -ENOBUFS
 * with the size. */
int copies_create(const struct move *move, const struct copies_config *config, struct copies **out,
                  struct error *err);
/* Copy the state, which stands so; all ranks together. Allocates nothing. Errors of the fabric,
 * with which the copies before these stay. */
int copies_take(struct copies *copies, const struct move_slice *state,
                const struct standing *standing, struct error *err);
/* Of host memory, over all slots. */
uint64_t copies_bytes(const struct copies *copies);
/* As copies_destroy, but for what is whole in them: *out is the caller's. Returns how many. */
int copies_leave(struct copies *copies, struct holding *out[COPIES_SLOTS]);
/* Their memory is given back. Accepts NULL. */
void copies_destroy(struct copies *copies);

#endif
