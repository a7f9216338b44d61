/* ranks.h - runs a function as every rank of a job, each a thread with its own fabric. */
#ifndef TESTS_SUPPORT_RANKS_H
#define TESTS_SUPPORT_RANKS_H

#include "worker/collectives/collective.h"

#include <pthread.h>

struct test_rank {
    const struct collectives *library;
    struct fabric *fabric;
    int rank, count;
    pthread_barrier_t *barrier; /* of all ranks */
    void *argument;
};

typedef void test_rank_cb(struct test_rank *rank);

/* Opens all fabrics, calls body as every rank, closes and returns when all are done. A body may
 * close its fabric itself and set it to NULL. A fabric that does not open ends the process. */
void test_ranks_run(const struct collectives *library, int count, double timeout_s,
                    test_rank_cb *body, void *argument);
/* What a thread in a lane of the accelerator exchanges lies in its memory. */
void test_ranks_run_on(const struct accelerator *accelerator, const struct collectives *library,
                       int count, double timeout_s, test_rank_cb *body, void *argument);

#endif
