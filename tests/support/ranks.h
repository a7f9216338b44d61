/* ranks.h - runs a function for every rank of a job, each in a thread with its own fabric. */
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

/* Open the fabrics of all ranks, call body for each once all are open, close them, and return when
 * all threads have ended. A body may close its fabric itself and set it to NULL. If a fabric cannot
 * be opened, the process exits. */
void test_ranks_run(const struct collectives *library, int count, double timeout_s,
                    test_rank_cb *body, void *argument);
/* The same with fabrics for an accelerator: a thread that has entered one of its lanes exchanges
 * data in device memory. */
void test_ranks_run_on(const struct accelerator *accelerator, const struct collectives *library,
                       int count, double timeout_s, test_rank_cb *body, void *argument);

#endif
