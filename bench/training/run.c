/* run.c - training speed on this machine's CPUs: GPT 6 x 384, 256 tokens, 8 samples a step.
 *
 * One rank, then two ranks as threads of this process under each kind of parallelism, every rank
 * bound to one core, interleaved: ROUNDS rounds of STEPS steps each; the median round counts.
 * A scaling is the throughput of two ranks over twice that of one. The matmul peak is the best
 * single-core sgemm of the model's own largest product, measured in the same rounds; and so is the
 * same model in PyTorch on one core, where there is one: peer.h. */
#include "bench/bench.h"
#include "bench/training/peer.h"
#include "common/base/memory.h"
#include "common/models/model.h"
#include "common/program/lower.h"
#include "worker/executor/cpuset.h"

#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 5
#define STEPS 3
#define BATCH 8
#define RANKS_MAX 2
#define TOKENS (BATCH * BENCH_SEQ) /* of a step */

static const char *const modes[] = {"eager", "compile"};
#define MODES (sizeof modes / sizeof *modes)

struct setting {
    const char *name;
    int stages;
    const char *role; /* of the one axis, of size 2; NULL: none */
    int micro_batches;
};

static const struct setting settings[] = {
    {"one", 1, NULL, 1}, {"dp2", 1, "batch", 1}, {"tp2", 1, "tensor", 1}, {"pp2", 2, NULL, 8}};
#define SETTINGS (sizeof settings / sizeof *settings)

struct rank {
    const struct setting *setting;
    int rank, count;
    struct local_hub *hub;
    struct program *program;
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
                                         .feed = &bench_feed,
                                         .optimizer = {.rate = 1e-3,
                                                       .steps = 1000,
                                                       .beta1 = 0.9,
                                                       .beta2 = 0.95,
                                                       .epsilon = 1e-8,
                                                       .decay = 0.1,
                                                       .clip = 1}};
    bench_need(interpreter_prepare(rank->program, &prepare, &in, &err), &err);
    interpreter_initialize(in, 1);
    for (uint64_t step = 0; step < STEPS + 1; step++) {
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

static struct plan *make_plan(const struct graph *graph, const struct setting *setting)
{
    struct plan *plan = plan_create(setting->stages, (int)graph->block_count);
    int half = plan->block_count / 2;
    for (int i = 0; i < setting->stages; i++) {
        struct plan_stage *stage = &plan->stages[i];
        stage->block_first = i * half;
        stage->block_count = setting->stages == 1 ? plan->block_count
                             : i == 0             ? half
                                                  : plan->block_count - half;
        if (setting->role)
            stage->mesh = (struct mesh){.axes = 1, .size = {2}};
        for (int b = 0; b < stage->block_count; b++) {
            struct plan_block *block = &plan->blocks[stage->block_first + b];
            block->stage = i;
            block->roles[0] = setting->role ? role_find(setting->role) : NULL;
        }
    }
    plan->micro_batches = setting->micro_batches;
    plan->micro_batch_samples = BATCH / setting->micro_batches;
    return plan;
}

/* Tokens per second of all ranks together. */
static double throughput(const struct graph *graph, const struct setting *setting)
{
    struct plan *plan = make_plan(graph, setting);
    struct rank ranks[RANKS_MAX] = {0};
    struct error err;
    pthread_barrier_t barrier;
    int count = plan_ranks(plan);
    struct local_hub *hub = local_hub_create(count);
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        ranks[i] = (struct rank){
            .setting = setting, .rank = i, .count = count, .hub = hub, .barrier = &barrier};
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
    return STEPS * TOKENS / seconds;
}

/* One core's best floating-point operations per second: (2048 x 384) (384 x 1536). */
static double matmul_peak(void)
{
    enum { M = BATCH * BENCH_SEQ, K = 384, N = 1536 };
    float *a = xcalloc((size_t)M * K, sizeof *a), *b = xcalloc((size_t)K * N, sizeof *b);
    float *c = xcalloc((size_t)M * N, sizeof *c);
    double best = 1e9;
    device_cpu.threads(1);
    for (int round = 0; round < 10; round++) {
        double begin = bench_now_s();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, K, 1, a, K, b, N, 0, c, N);
        double took = bench_now_s() - begin;
        best = took < best ? took : best;
    }
    free(a);
    free(b);
    free(c);
    return 2.0 * M * K * N / best;
}

static double model_flops(const struct graph *graph)
{
    struct plan *plan = make_plan(graph, &settings[0]);
    struct program *program;
    struct error err;
    bench_need(lower(graph, plan, 0, &program, &err), &err);
    double flops = 0;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        if (instruction->kind == INSTRUCTION_KERNEL &&
            graph->nodes[instruction->kernel.node].operation->flops == operation_matmul_flops)
            flops += instruction_flops(program, instruction);
    }
    program_destroy(program);
    plan_destroy(plan);
    return flops;
}

/* On the first rank's core; NULL: PyTorch is not there, and has said so. */
static struct peer *open_peer(const struct model_config *config, const char *mode)
{
    cpu_set_t sets[CPUSETS_MAX];
    struct peer *peer;
    struct error err;
    size_t core = 0;
    cpuset_share(RANKS_MAX, sets);
    while (!CPU_ISSET(core, &sets[0]))
        core++;
    char where[8];
    snprintf(where, sizeof where, "%zu", core);
    const struct peer_config of = {config, BATCH, where, mode};
    if (peer_open(&of, &peer, &err) == 0)
        return peer;
    fprintf(stderr, "%s\n", err.text);
    return NULL;
}

static void print_peer(const struct peer *peer, const char *mode, double ours, double *rates)
{
    if (!peer) {
        printf("bench training/gpt6x384_f32_vs_torch_%s - skipped PyTorch does not train here\n",
               mode);
        return;
    }
    double theirs = bench_median(rates, ROUNDS);
    printf("bench training/gpt6x384_f32_vs_torch_%s %.3f ratio  # PyTorch %s, one core: %.0f "
           "tokens/s\n",
           mode, ours / theirs, peer_release(peer), theirs);
}

int main(void)
{
    const struct model_config config = {.family = "gpt",
                                        .layers = 6,
                                        .hidden = 384,
                                        .heads = 6,
                                        .seq = BENCH_SEQ,
                                        .vocab = BENCH_VOCAB};
    struct graph *graph;
    struct error err;
    struct peer *peers[MODES];
    double rates[SETTINGS][ROUNDS], theirs[MODES][ROUNDS], peak = 0;
    bench_need(model_build(&config, &graph, &err), &err);
    for (size_t i = 0; i < MODES; i++)
        peers[i] = open_peer(&config, modes[i]);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < MODES; i++)
            theirs[i][round] = peers[i] ? STEPS * TOKENS / peer_seconds(peers[i], STEPS) : 0;
        for (size_t i = 0; i < SETTINGS; i++)
            rates[i][round] = throughput(graph, &settings[i]);
        double here = matmul_peak();
        peak = here > peak ? here : peak;
    }
    for (size_t i = 0; i < SETTINGS; i++)
        bench_median(rates[i], ROUNDS);

    double one = rates[0][ROUNDS / 2];
    printf("bench training/gpt6x384_f32_tokens_per_core_s %.0f tokens/s  # 1 rank, best %.0f, "
           "worst %.0f\n",
           one, rates[0][ROUNDS - 1], rates[0][0]);
    printf("bench training/matmul_peak %.1f GFLOP/s  # one core, 2048x384x1536\n", peak * 1e-9);
    printf("bench training/matmul_share_of_peak %.3f ratio\n",
           one / TOKENS * model_flops(graph) / peak);
    for (size_t i = 1; i < SETTINGS; i++) {
        double two = rates[i][ROUNDS / 2];
        printf("bench training/gpt6x384_f32_%s_tokens_per_core_s %.0f tokens/s\n", settings[i].name,
               two / 2);
        printf("bench training/%s_scaling %.3f ratio\n", settings[i].name, two / (2 * one));
    }
    for (size_t i = 0; i < MODES; i++) {
        print_peer(peers[i], modes[i], one, theirs[i]);
        peer_close(peers[i]);
    }
    printf("bench training done\n");
    graph_destroy(graph);
    return EXIT_SUCCESS;
}
