/* rank.h - one of two ranks that train the same model on one queue and on two, in turns. */
#ifndef BENCH_OVERLAP_RANK_H
#define BENCH_OVERLAP_RANK_H

#include "bench/division.h"
#include "worker/collectives/collective.h"

#define ROUNDS 5

/* Of one rank, mean of the measured steps of each round. */
struct figures {
    double step_s[ROUNDS];
    double moved_s[ROUNDS];   /* in collectives and receives */
    double exposed_s[ROUNDS]; /* of computing, which stood still meanwhile */
};

enum turn { TURN_ONE_QUEUE, TURN_TWO_QUEUES, TURNS };

/* As rank 0 or 1 over Gloo, from this address. Fills out[turn]; errors end the process. */
void rank_measure(const struct division *division, int rank, const struct rendezvous *rendezvous,
                  const char *address, struct figures out[TURNS]);

#endif
