/* copies.h - copies, in other ranks' memory, of what no other rank holds.
 *
 * If a plan leaves a slice of the state on one node only, losing that node would lose the step. So
 * after every few steps each rank copies its own state, and sends what it alone holds to its
 * neighbour: the next rank on another node. After a loss, all ranks go back to the age of the
 * copies. A plan whose replicas hold everything twice makes no copies.
 *
 * Nor does a plan on a single node: the worker, which outlives its executors, has their states
 * anyhow, and nobody has them after the node. Only where a state dies with its executor do ranks on
 * a single node copy what one of them holds alone; the neighbour is the next rank then.
 *
 * Until the next step is applied it only reads the state. So a thread fetches the state meanwhile,
 * copies it, and exchanges what ranks hold alone. All ranks copy after the same steps, and each
 * waits for its own copies before it takes part in the exchange after which the next step is
 * applied. So a rank that is one step further knows that the newest copies are complete on all
 * ranks. Until then the previous ones are kept, which is why there are two of each.
 *
 * Copies lie in the estate, in two holdings, as states do. What was entrusted to a killed executor
 * is therefore not lost with it: its successor offers it as its own. */
#ifndef WORKER_MOVE_COPIES_H
#define WORKER_MOVE_COPIES_H

#include "worker/estate/estate.h"
#include "worker/move/move.h"
#include "worker/trail/trail.h"

struct copies;

struct copies_config {
    struct fabric *fabric;    /* of the ranks of the plan */
    const struct plan *plan;  /* this and nodes are lent for copies_create */
    const char *const *nodes; /* node of each rank */
    bool outlived;            /* the worker has the state of a killed executor, on every rank */
    struct estate *estate;    /* lent; must outlive the copies */
    uint64_t epoch;           /* of the plan */
};

/* Set up copies after the ranks have met; for ranks of the plan. *out is NULL if the plan needs
 * none. -ENOBUFS with the size. */
int copies_create(const struct move *move, const struct copies_config *config, struct copies **out,
                  struct error *err);
/* Copy the state, which has this standing. Collective. Allocates nothing. After an error of the
 * fabric the previous copies are still whole. */
int copies_take(struct copies *copies, const struct state_slice *state,
                const struct standing *standing, struct error *err);

/* What the thread copies. All pointers are lent until the copies end. */
struct copies_source {
    const struct state_slice *state; /* on the host's side */
    /* Bring the state there, on the thread. */
    int (*fetch_cb)(void *context, struct error *err);
    void *context;
    struct trail *trail; /* NULL: none */
};
/* Start the thread, which does nothing yet. -errno. */
int copies_start(struct copies *copies, const struct copies_source *source, struct error *err);
/* Begin to copy the state as it is now, which has this standing. Collective, as copies_take is, but
 * returns at once. What was begun before must have been waited for. */
void copies_begin(struct copies *copies, const struct standing *standing);
/* Wait until what was begun is complete: 0, also if nothing was; or the error that broke it off.
 * Accepts NULL. */
int copies_await(struct copies *copies, struct error *err);
/* The error with which copies of the thread failed, which have aborted their fabric then; 0: none
 * has. Accepts NULL. */
int copies_failed(struct copies *copies, struct error *err);

/* Host memory used, over both slots. */
uint64_t copies_bytes(const struct copies *copies);
/* End the thread and the copies. Those that are under way are waited for: if ranks are lost, the
 * others' may still become whole. They end at the latest when the fabric is aborted. Accepts NULL.
 */
void copies_destroy(struct copies *copies);
/* The same, except for the holdings that are whole: *out are the caller's, their number
 * is returned. Accepts NULL. */
int copies_leave(struct copies *copies, struct holding *out[COPIES_SLOTS]);

#endif
