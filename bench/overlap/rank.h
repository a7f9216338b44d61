/* rank.h - one of two ranks that train the same model on one queue and on two, in turns. */
#ifndef BENCH_OVERLAP_RANK_H
#define BENCH_OVERLAP_RANK_H

#include "worker/collectives/collective.h"

#define ROUNDS 5

/* A division of the model over two ranks. */
struct setting {
    const char *name;
    int stages;
    const char *role; /* of the one axis, of size 2; NULL: none */
    int zero, micro_batches;
};

/* Of one rank, mean of the measured steps of each round. */
struct figures {
    double step_s[ROUNDS];
    double moved_s[ROUNDS];   /* in collectives and receives */
    double exposed_s[ROUNDS]; /* of computing, which stood still meanwhile */
};

enum turn { TURN_ONE_QUEUE, TURN_TWO_QUEUES, TURNS };

/* As rank 0 or 1 over Gloo, from this address. Fills out[turn]; errors end the process. */
void rank_measure(const struct setting *setting, int rank, const struct rendezvous *rendezvous,
                  const char *address, struct figures out[TURNS]);

#endif
