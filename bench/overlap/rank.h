/* rank.h - one of two ranks that train the same model, by turns with everything on one queue and
 * with communication on a queue of its own. */
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

/* Measure as rank 0 or 1, over Gloo on the interface with this address. Fills out[turn]; errors end
 * the process. */
void rank_measure(const struct division *division, int rank, const struct rendezvous *rendezvous,
                  const char *address, struct figures out[TURNS]);

#endif
