/* run.c - measures training speed on this machine's CPUs.
 *
 * Subjects are one rank, and two ranks (threads of this process) under each kind of parallelism,
 * every rank bound to one core. They take turns, in rounds of a few steps each; the median round
 * counts. A scaling is the throughput of two ranks over twice that of one. Measured in the same
 * rounds are the matmul peak, which is the best single-core rate of the small model's largest
 * products, and the same model in PyTorch on one core, where that is installed (peer.h).
 *
 * usage: run [SUBJECT], by its name. */
#include "bench/bench.h"
#include "bench/training/peer.h"
#include "bench/training/ranks.h"
#include "common/base/memory.h"
#include "common/models/huggingface.h"
#include "common/program/lower.h"
#include "worker/hardware/cpuset.h"
#include "worker/kernels/cpu/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 5

static const char *const modes[] = {"eager", "compile"};
#define MODES (sizeof modes / sizeof *modes)

static const struct division divisions[] = {
    {"one", 1, NULL, 1}, {"dp2", 1, "batch", 1}, {"tp2", 1, "tensor", 1}, {"pp2", 2, NULL, 8}};
#define DIVISIONS (sizeof divisions / sizeof *divisions)

/* What is trained, with how many samples a step. */
static const struct subject {
    const char *name, *family;
    int layers, hidden, heads;
    struct bench_tokens tokens;
    enum element element;
    int batch;
    size_t divisions; /* the first of them */
} subjects[] = {
    {"gpt6x384_f32", "gpt", 6, 384, 6, {256, 256}, ELEMENT_F32, 8, DIVISIONS},
    {"gpt6x384_bf16", "gpt", 6, 384, 6, {256, 256}, ELEMENT_BF16, 16, DIVISIONS},
    {"llama6x384_f32", "llama", 6, 384, 6, {256, 256}, ELEMENT_F32, 8, 1},
    {"llama6x384_bf16", "llama", 6, 384, 6, {256, 256}, ELEMENT_BF16, 16, 1},
    {"gpt124m_bf16", "gpt", 12, 768, 12, {1024, 50257}, ELEMENT_BF16, 1, 1},
};
#define SUBJECTS (sizeof subjects / sizeof *subjects)

/* Of one subject. */
struct figures {
    const struct subject *of;
    struct graph *graph;
    struct peer *peers[MODES];
    double rates[DIVISIONS][ROUNDS], theirs[MODES][ROUNDS]; /* tokens/s */
    double peak;                                            /* of matrix products */
};

/* On the first rank's core; NULL: PyTorch is not there, and has said so. */
static struct peer *open_peer(const struct job_model *config, enum element element, int batch,
                              const char *mode)
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
    const struct peer_config of = {config, element, batch, where, mode};
    if (peer_open(&of, &peer, &err) == 0)
        return peer;
    fprintf(stderr, "%s\n", err.text);
    return NULL;
}

static void open_subject(struct figures *figures, const struct subject *subject)
{
    struct job_model config = {.family = subject->family,
                               .layers = subject->layers,
                               .hidden = subject->hidden,
                               .heads = subject->heads,
                               .seq = subject->tokens.seq,
                               .vocab = subject->tokens.vocab};
    struct error err;
    *figures = (struct figures){.of = subject};
    bench_need(model_build(&config, subject->element, &figures->graph, &err), &err);
    config.ffn = huggingface_size(figures->graph, "layers.0.fc1.weight", 'f');
    for (size_t i = 0; i < MODES; i++)
        figures->peers[i] = open_peer(&config, subject->element, subject->batch, modes[i]);
}

/* One core's best floating-point operations per second: (2048 x 384) (384 x 1536). */
static double matmul_peak(enum element element)
{
    enum { M = 2048, K = 384, N = 1536 };
    float *a = xcalloc((size_t)M * K, sizeof *a), *b = xcalloc((size_t)K * N, sizeof *b);
    float *c = xcalloc((size_t)M * N, sizeof *c);
    const struct product product = {.rows = M,
                                    .columns = N,
                                    .inner = K,
                                    .element = element,
                                    .a = {a, K, false},
                                    .b = {b, N, false},
                                    .c = c,
                                    .stride = N,
                                    .result = element};
    double best = 1e9;
    device_cpu.threads(1);
    for (int round = 0; round < 10; round++) {
        double begin = bench_now_s();
        product_run(&product);
        double took = bench_now_s() - begin;
        best = took < best ? took : best;
    }
    free(a);
    free(b);
    free(c);
    return 2.0 * M * K * N / best;
}

static void run_round(struct figures *figures, int round)
{
    const struct subject *of = figures->of;
    for (size_t i = 0; i < MODES; i++)
        if (figures->peers[i])
            figures->theirs[i][round] = (double)(of->tokens.seq * of->batch * RANKS_STEPS) /
                                        peer_seconds(figures->peers[i], RANKS_STEPS);
    for (size_t i = 0; i < of->divisions; i++)
        figures->rates[i][round] =
            ranks_throughput(figures->graph, &divisions[i], of->batch, &of->tokens);
    double peak = matmul_peak(of->element);
    figures->peak = peak > figures->peak ? peak : figures->peak;
}

/* Of a step's matrix products. */
static double model_flops(const struct graph *graph, int batch)
{
    struct plan *plan = division_plan(&divisions[0], graph, batch);
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

static void print_peers(struct figures *figures)
{
    const char *name = figures->of->name;
    double ours = figures->rates[0][ROUNDS / 2], best = 0;
    for (size_t i = 0; i < MODES; i++) {
        if (!figures->peers[i]) {
            printf("bench training/%s_vs_torch_%s - skipped PyTorch does not train here\n", name,
                   modes[i]);
            continue;
        }
        double theirs = bench_median(figures->theirs[i], ROUNDS);
        best = theirs > best ? theirs : best;
        printf("bench training/%s_vs_torch_%s %.3f ratio  # PyTorch %s, one core: %.0f tokens/s\n",
               name, modes[i], ours / theirs, peer_release(figures->peers[i]), theirs);
    }
    if (best > 0)
        printf("bench training/%s_vs_torch %.3f ratio  # the faster one of them\n", name,
               ours / best);
    else
        printf("bench training/%s_vs_torch - skipped PyTorch does not train here\n", name);
}

/* Of a step's matrix products, of the peak. */
static double share_of_peak(const struct figures *figures)
{
    const struct subject *of = figures->of;
    double steps_per_s = figures->rates[0][ROUNDS / 2] / (double)(of->batch * of->tokens.seq);
    return steps_per_s * model_flops(figures->graph, of->batch) / figures->peak;
}

/* Of two ranks, to twice one. */
static double scaling(const struct figures *figures, size_t division)
{
    return figures->rates[division][ROUNDS / 2] / (2 * figures->rates[0][ROUNDS / 2]);
}

static void print_subject(struct figures *figures)
{
    const struct subject *of = figures->of;
    const char *name = of->name;
    for (size_t i = 0; i < of->divisions; i++)
        bench_median(figures->rates[i], ROUNDS);
    const double *one = figures->rates[0];
    printf("bench training/%s_tokens_per_core_s %.0f tokens/s  # 1 rank, best %.0f, worst %.0f\n",
           name, one[ROUNDS / 2], one[ROUNDS - 1], one[0]);
    printf("bench training/%s_matmul_peak %.1f GFLOP/s  # one core, 2048x384x1536\n", name,
           figures->peak * 1e-9);
    printf("bench training/%s_matmul_share_of_peak %.3f ratio\n", name, share_of_peak(figures));
    for (size_t i = 1; i < of->divisions; i++) {
        printf("bench training/%s_%s_tokens_per_core_s %.0f tokens/s\n", name, divisions[i].name,
               figures->rates[i][ROUNDS / 2] / 2);
        printf("bench training/%s_%s_scaling %.3f ratio\n", name, divisions[i].name,
               scaling(figures, i));
    }
    print_peers(figures);
    fflush(stdout);
}

/* What is asked of training as such: of the first subject. */
static void print_headlines(const struct figures *figures)
{
    printf("bench training/matmul_share_of_peak %.3f ratio  # of %s\n", share_of_peak(figures),
           figures->of->name);
    for (size_t i = 1; i < figures->of->divisions; i++)
        printf("bench training/%s_scaling %.3f ratio  # of %s\n", divisions[i].name,
               scaling(figures, i), figures->of->name);
    printf("bench training/exposed_comm_dp2_1gbit - skipped ./dev bench overlap measures it, in "
           "network namespaces\n");
    fflush(stdout);
}

static void run_subject(const struct subject *subject)
{
    struct figures figures;
    open_subject(&figures, subject);
    for (int round = 0; round < ROUNDS; round++)
        run_round(&figures, round);
    print_subject(&figures);
    if (subject == subjects)
        print_headlines(&figures);
    for (size_t mode = 0; mode < MODES; mode++)
        peer_close(figures.peers[mode]);
    graph_destroy(figures.graph);
}

int main(int argc, char **argv)
{
    bool found = false;
    for (size_t i = 0; i < SUBJECTS; i++) {
        if (argc > 1 && strcmp(argv[1], subjects[i].name) != 0)
            continue;
        run_subject(&subjects[i]);
        found = true;
    }
    if (!found || argc > 2) {
        fprintf(stderr, "usage: %s [SUBJECT]; subjects:", argv[0]);
        for (size_t i = 0; i < SUBJECTS; i++)
            fprintf(stderr, " %s", subjects[i].name);
        fprintf(stderr, "\n");
        return 64;
    }
    printf("bench training done\n");
    return EXIT_SUCCESS;
}
