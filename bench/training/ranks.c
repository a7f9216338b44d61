/* ranks.c - one thread per rank. All begin the measured steps together, and the slowest counts. */
#include "bench/training/ranks.h"

#include "common/program/lower.h"
#include "worker/hardware/cpuset.h"

#include <pthread.h>
#include <stdlib.h>

struct rank {
    int rank, count;
    struct local_hub *hub;
    struct program *program;
    const struct feed *feed;
    pthread_barrier_t *barrier;
    pthread_t thread;
    double seconds; /* of the measured steps */
};

static void *rank_run(void *context)
{
    struct rank *rank = context;
    struct error err;
    struct fabric *fabric = NULL;
    struct interpreter *in;
    struct fabric_config config = {
        .rank = rank->rank, .count = rank->count, .timeout_s = 60, .shared = rank->hub};
    cpu_set_t sets[CPUSETS_MAX];
    int threads;
    cpuset_share(RANKS_MAX, sets);
    bench_need(cpuset_bind(&sets[rank->rank], &threads, &err), &err);
    device_cpu.threads(1);
    if (rank->count > 1)
        bench_need(collectives_local.open(&config, &fabric, &err), &err);
    struct interpreter_config prepare = {.device = &device_cpu,
                                         .collectives = &collectives_local,
                                         .fabric = fabric,
                                         .feed = rank->feed,
                                         .optimizer = bench_optimizer};
    bench_need(interpreter_prepare(rank->program, &prepare, &in, &err), &err);
    interpreter_initialize(in, 1);
    for (uint64_t step = 0; step < RANKS_STEPS + 1; step++) {
        struct step_result result;
        if (step == 1) {
            pthread_barrier_wait(rank->barrier);
            rank->seconds = bench_now_s();
        }
        bench_need(interpreter_run(in, PROGRAM_TRAIN, step, &result, &err), &err);
    }
    bench_need(interpreter_quiesce(in, &err), &err);
    rank->seconds = bench_now_s() - rank->seconds;
    interpreter_release(in);
    collectives_local.close(fabric);
    return NULL;
}

double ranks_throughput(const struct graph *graph, const struct division *division, int batch,
                        const struct bench_tokens *tokens)
{
    struct plan *plan = division_plan(division, graph, batch);
    const struct feed feed = bench_feed_of(tokens);
    struct rank ranks[RANKS_MAX] = {0};
    struct error err;
    pthread_barrier_t barrier;
    int count = plan_ranks(plan);
    struct local_hub *hub = local_hub_create(count);
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        ranks[i] = (struct rank){
            .rank = i, .count = count, .hub = hub, .feed = &feed, .barrier = &barrier};
        bench_need(lower(graph, plan, i, &ranks[i].program, &err), &err);
        if (pthread_create(&ranks[i].thread, NULL, rank_run, &ranks[i]) != 0)
            abort();
    }
    double seconds = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(ranks[i].thread, NULL);
        seconds = ranks[i].seconds > seconds ? ranks[i].seconds : seconds;
        program_destroy(ranks[i].program);
    }
    pthread_barrier_destroy(&barrier);
    local_hub_destroy(hub);
    plan_destroy(plan);
    return (double)(tokens->seq * batch * RANKS_STEPS) / seconds;
}
