/* rank.h - one of two ranks that train the same model, by turns with everything on one queue and
 * with communication on a queue of its own; or, with copies of its state, by turns without any,
 * between steps and beside them. */
#ifndef BENCH_OVERLAP_RANK_H
#define BENCH_OVERLAP_RANK_H

#include "bench/division.h"
#include "worker/collectives/collective.h"

#define ROUNDS 5

/* Times of one rank, per step: the mean of the steps of each round. */
struct figures {
    double step_s[ROUNDS];
    double moved_s[ROUNDS];   /* in collectives and receives */
    double exposed_s[ROUNDS]; /* during which computing stood still */
};

enum turn { TURN_ONE_QUEUE, TURN_TWO_QUEUES, TURNS };
enum copying { COPYING_NOT, COPYING_BETWEEN, COPYING_BESIDE, COPYINGS };
#define FIGURES 3 /* of either, at most */

/* What a rank trains with. */
struct training {
    int rank;
    struct graph *graph;
    struct plan *plan;
    struct fabric *fabric; /* of Gloo */
};

/* Bind this process to its share of the cores, build the model and join the other rank over the
 * interface with this address; errors end the process. */
struct training training_open(const struct division *division, int rank,
                              const struct rendezvous *rendezvous, const char *address);
void training_close(struct training *training);

/* Measure as one of the two ranks; errors end the process. */
void rank_measure(const struct training *training, struct figures out[TURNS]);
/* step_s only: of rounds in which no copies of the state are made, or after every step. */
void rank_measure_copies(const struct training *training, struct figures out[COPYINGS]);

#endif
