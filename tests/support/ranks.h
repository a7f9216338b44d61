/* ranks.h - runs a function for every rank of a job: each in a thread with its own fabric, or each
 * in a forked process; and a rendezvous in shared memory, by which either find each other. */
#ifndef TESTS_SUPPORT_RANKS_H
#define TESTS_SUPPORT_RANKS_H

#include "common/base/error.h"
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

/* A negative result ends the job. */
typedef int test_process_cb(int rank, void *context);

/* Fork a process for each rank, in which body is called, and wait until all have ended. Once one
 * has failed (-ECHILD), or after the limit (-ETIMEDOUT), the others are killed. A process that has
 * threads, or has spoken to a device, must not call this. */
int test_processes_run(int count, double limit_s, test_process_cb *body, void *context,
                       struct error *err);

/* To be created before processes are forked. Its get() waits at most limit_s for a key. */
struct rendezvous *test_rendezvous_create(double limit_s);
void test_rendezvous_destroy(struct rendezvous *rendezvous);

#endif
