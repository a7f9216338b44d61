/* rank.c - the two programs of a rank on one fabric, some steps of each in every round. */
#include "bench/overlap/rank.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/models/model.h"
#include "common/program/lower.h"
#include "worker/executor/cpuset.h"
#include "worker/executor/interpreter.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define RANKS 2
#define STEPS 2
#define BATCH 8
#define SEQ 256

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void need(int rc, const struct error *err)
{
    if (rc < 0) {
        fprintf(stderr, "%s\n", err->text);
        exit(EXIT_FAILURE);
    }
}

static void fill(const void *context, enum program_kind kind, uint64_t first, const struct box *box,
                 bool targets, int32_t *out)
{
    (void)context, (void)kind;
    for (int64_t sample = box->low[0]; sample < box->high[0]; sample++)
        for (int64_t place = box->low[1]; place < box->high[1]; place++)
            *out++ = (int32_t)random_below(1, targets,
                                           (first + (uint64_t)sample) * SEQ + (uint64_t)place, 256);
}

static double targets(const void *context, enum program_kind kind, uint64_t first, uint64_t samples)
{
    (void)context, (void)kind, (void)first;
    return (double)(samples * SEQ);
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
            stage->mesh = (struct mesh){.axes = 1, .size = {RANKS}};
    }
    for (int b = 0; b < plan->block_count; b++)
        plan->blocks[b] =
            (struct plan_block){.stage = setting->stages > 1 && b >= half,
                                .roles = {setting->role ? role_find(setting->role) : NULL},
                                .zero = setting->zero};
    plan->micro_batches = setting->micro_batches;
    plan->micro_batch_samples = BATCH / setting->micro_batches;
    return plan;
}

static bool moves(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_COLLECTIVE || instruction->kind == INSTRUCTION_RECEIVE;
}

/* Seconds so far: in what is moved; and of these, and of waiting for them, those of computing. */
static void sum_up(const struct interpreter *in, double *moved, double *exposed)
{
    const struct program *program = interpreter_program(in);
    *moved = *exposed = 0;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        double seconds = moves(instruction) ? interpreter_seconds(in)[i] : 0;
        *moved += seconds;
        if (instruction->queue == QUEUE_COMPUTE)
            *exposed += seconds + interpreter_waited(in)[i];
    }
}

static void run_round(struct interpreter *in, int round, struct figures *out)
{
    struct step_result result;
    struct error err;
    double moved, exposed, moved_before, exposed_before;
    sum_up(in, &moved_before, &exposed_before);
    double begin = now();
    uint64_t first = 1 + (uint64_t)round * STEPS;
    for (uint64_t step = first; step < first + STEPS; step++)
        need(interpreter_run(in, PROGRAM_TRAIN, step, &result, &err), &err);
    need(interpreter_quiesce(in, &err), &err);
    out->step_s[round] = (now() - begin) / STEPS;
    sum_up(in, &moved, &exposed);
    out->moved_s[round] = (moved - moved_before) / STEPS;
    out->exposed_s[round] = (exposed - exposed_before) / STEPS;
}

void rank_measure(const struct setting *setting, int rank, const struct rendezvous *rendezvous,
                  const char *address, struct figures out[TURNS])
{
    const struct model_config config = {
        .family = "gpt", .layers = 6, .hidden = 384, .heads = 6, .seq = SEQ, .vocab = 256};
    struct fabric_config joining = {.rank = rank,
                                    .count = RANKS,
                                    .timeout_s = 60,
                                    .rendezvous = rendezvous,
                                    .interface = address};
    struct feed feed = {NULL, fill, targets};
    struct interpreter *in[TURNS];
    struct program *programs[TURNS];
    struct graph *graph;
    struct fabric *fabric;
    struct error err;
    cpu_set_t sets[CPUSETS_MAX];
    int threads;
    cpuset_share(RANKS, sets);
    need(cpuset_bind(&sets[rank], &threads, &err), &err);
    device_cpu.threads(threads);
    need(model_build(&config, &graph, &err), &err);
    need(collectives_find("gloo")->open(&joining, &fabric, &err), &err);
    struct interpreter_config prepare = {
        .device = &device_cpu,
        .collectives = collectives_find("gloo"),
        .fabric = fabric,
        .feed = &feed,
        .optimizer = {
            .rate = 1e-3, .steps = 1000, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .clip = 1}};
    struct plan *plan = make_plan(graph, setting);
    for (int turn = 0; turn < TURNS; turn++) {
        struct step_result result;
        plan->overlap = turn == TURN_TWO_QUEUES;
        need(lower(graph, plan, rank, &programs[turn], &err), &err);
        need(interpreter_prepare(programs[turn], &prepare, &in[turn], &err), &err);
        interpreter_initialize(in[turn], 1);
        need(interpreter_run(in[turn], PROGRAM_TRAIN, 0, &result, &err), &err);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int turn = 0; turn < TURNS; turn++)
            run_round(in[turn], round, &out[turn]);
    for (int turn = 0; turn < TURNS; turn++) {
        interpreter_release(in[turn]);
        program_destroy(programs[turn]);
    }
    collectives_find("gloo")->close(fabric);
    plan_destroy(plan);
    graph_destroy(graph);
}
