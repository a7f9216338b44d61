/* outcome.h - what the ranks of engine.h leave, in memory that forked processes share. */
#ifndef TESTS_SUPPORT_OUTCOME_H
#define TESTS_SUPPORT_OUTCOME_H

#include "tests/support/engine.h"

#include <pthread.h>

/* Of one run. Behind it lies what has been taken. */
struct outcome {
    pthread_mutex_t lock;
    int rc; /* the first failure, and its words */
    struct error err;
    size_t size, used;
    struct engine_result result; /* which owns all this: engine_result_finish() */
};

struct outcome *outcome_create(const struct graph *graph, int ranks);
/* Zeros, for one of the arrays of the result; under the lock. */
void *outcome_take(struct outcome *outcome, size_t count, size_t size);

#endif
