/* ranks.c - a job of threads. */
#include "tests/support/ranks.h"

#include "common/base/memory.h"
#include "tests/support/rendezvous.h"

#include <stdio.h>
#include <stdlib.h>

struct thread {
    pthread_t thread;
    struct test_rank rank;
    struct fabric_config config;
    test_rank_cb *body;
};

static void *thread_run(void *context)
{
    struct thread *thread = context;
    struct test_rank *rank = &thread->rank;
    struct error err;
    if (rank->library->open(&thread->config, &rank->fabric, &err) < 0) {
        fprintf(stderr, "rank %d does not open: %s\n", rank->rank, err.text);
        exit(EXIT_FAILURE);
    }
    pthread_barrier_wait(rank->barrier);
    thread->body(rank);
    rank->library->close(rank->fabric);
    return NULL;
}

void test_ranks_run(const struct collectives *library, int count, double timeout_s,
                    test_rank_cb *body, void *argument)
{
    test_ranks_run_on(NULL, library, count, timeout_s, body, argument);
}

void test_ranks_run_on(const struct accelerator *accelerator, const struct collectives *library,
                       int count, double timeout_s, test_rank_cb *body, void *argument)
{
    struct rendezvous *rendezvous = test_rendezvous_create(10);
    struct local_hub *hub = local_hub_create(count);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    struct thread *threads = xcalloc((size_t)count, sizeof *threads);
    for (int i = 0; i < count; i++) {
        threads[i] = (struct thread){
            .rank = {library, NULL, i, count, &barrier, argument},
            .config = {.rank = i,
                       .count = count,
                       .timeout_s = timeout_s,
                       .rendezvous = rendezvous,
                       .shared = hub,
                       .accelerator = accelerator},
            .body = body,
        };
        if (pthread_create(&threads[i].thread, NULL, thread_run, &threads[i]) != 0)
            abort();
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i].thread, NULL);
    free(threads);
    pthread_barrier_destroy(&barrier);
    local_hub_destroy(hub);
    test_rendezvous_destroy(rendezvous);
}
