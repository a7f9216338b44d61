/* rank.c - runs a rank's two programs on the same fabric, some steps of each in every round. */
#include "bench/overlap/rank.h"

#include "bench/bench.h"
#include "common/models/model.h"
#include "common/program/lower.h"
#include "worker/hardware/cpuset.h"

#define RANKS 2
#define STEPS 2
#define BATCH 8

static bool moves(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_COLLECTIVE || instruction->kind == INSTRUCTION_RECEIVE;
}

/* Seconds so far in collectives and receives; and of those, and of waiting for them, the seconds of
 * the compute queue. */
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
    double begin = bench_now_s();
    uint64_t first = 1 + (uint64_t)round * STEPS;
    for (uint64_t step = first; step < first + STEPS; step++)
        bench_need(interpreter_run(in, PROGRAM_TRAIN, step, &result, &err), &err);
    bench_need(interpreter_quiesce(in, &err), &err);
    out->step_s[round] = (bench_now_s() - begin) / STEPS;
    sum_up(in, &moved, &exposed);
    out->moved_s[round] = (moved - moved_before) / STEPS;
    out->exposed_s[round] = (exposed - exposed_before) / STEPS;
}

struct training training_open(const struct division *division, int rank,
                              const struct rendezvous *rendezvous, const char *address)
{
    const struct job_model config = {.family = "gpt",
                                     .layers = 6,
                                     .hidden = 384,
                                     .heads = 6,
                                     .seq = BENCH_SEQ,
                                     .vocab = BENCH_VOCAB};
    const struct fabric_config joining = {.rank = rank,
                                          .count = RANKS,
                                          .timeout_s = 60,
                                          .rendezvous = rendezvous,
                                          .interface = address};
    struct training training = {.rank = rank};
    struct error err;
    cpu_set_t sets[CPUSETS_MAX];
    int threads;
    cpuset_share(RANKS, sets);
    bench_need(cpuset_bind(&sets[rank], &threads, &err), &err);
    device_cpu.threads(threads);
    bench_need(model_build(&config, ELEMENT_F32, &training.graph, &err), &err);
    bench_need(collectives_find("gloo")->open(&joining, &training.fabric, &err), &err);
    training.plan = division_plan(division, training.graph, BATCH);
    return training;
}

void training_close(struct training *training)
{
    collectives_find("gloo")->close(training->fabric);
    plan_destroy(training->plan);
    graph_destroy(training->graph);
}

void rank_measure(const struct training *training, struct figures out[TURNS])
{
    const struct interpreter_config prepare = {.device = &device_cpu,
                                               .collectives = collectives_find("gloo"),
                                               .fabric = training->fabric,
                                               .feed = &bench_feed,
                                               .optimizer = bench_optimizer};
    struct interpreter *in[TURNS];
    struct program *programs[TURNS];
    struct error err;
    for (int turn = 0; turn < TURNS; turn++) {
        struct step_result result;
        training->plan->overlap = turn == TURN_TWO_QUEUES;
        bench_need(lower(training->graph, training->plan, training->rank, &programs[turn], &err),
                   &err);
        bench_need(interpreter_prepare(programs[turn], &prepare, &in[turn], &err), &err);
        interpreter_initialize(in[turn], 1);
        bench_need(interpreter_run(in[turn], PROGRAM_TRAIN, 0, &result, &err), &err);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int turn = 0; turn < TURNS; turn++)
            run_round(in[turn], round, &out[turn]);
    for (int turn = 0; turn < TURNS; turn++) {
        interpreter_release(in[turn]);
        program_destroy(programs[turn]);
    }
}
