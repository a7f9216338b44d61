/* saves.c - measures what being ready for a loss costs: how much a checkpoint slows down the
 * training beside it, and what a state that outlives its process, with its journal, adds to a step.
 * GPT 6 x 384, 256 tokens, 8 samples per step, one rank on one core, which it shares with the
 * writer of checkpoints, as in the executor of a device of one core.
 *
 * Steps alternate: one with a save, from the copy before it to the end of the step, then one
 * without, once the save is on disk. The median of each kind counts. A save writes the master
 * weights and both moments durably to a folder below $TMPDIR, or /tmp. */
#include "bench/bench.h"
#include "bench/division.h"
#include "bench/recovery/recovery.h"

#include "common/base/memory.h"
#include "common/models/model.h"
#include "common/program/lower.h"
#include "worker/checkpoint/saver.h"
#include "worker/hardware/cpuset.h"

#include <stdio.h>
#include <stdlib.h>

#define PAIRS 9
#define BATCH 8

static void *buffer_of(void *in, int buffer)
{
    return interpreter_buffer(in, buffer);
}

/* One checkpoint at a time is kept. */
static int staged(void *context, const struct saver_report *report, struct saver_listed *listed,
                  struct error *err)
{
    (void)context;
    if (report->failure)
        return error_set(err, -1, "%s", report->failure);
    listed->names = xcalloc(1, sizeof(char *));
    listed->names[listed->count++] = xstrdup(report->name);
    return 0;
}

static double run_step(struct interpreter *in, uint64_t step)
{
    struct step_result result;
    struct error err;
    double begin = bench_now_s();
    bench_need(interpreter_run(in, PROGRAM_TRAIN, step, &result, &err), &err);
    return bench_now_s() - begin;
}

static void measure(struct interpreter *in, struct saver *saver)
{
    double beside[PAIRS], without[PAIRS], copies[PAIRS], saves[PAIRS];
    struct error err;
    uint64_t step = 0;
    run_step(in, step++);
    for (int i = 0; i < PAIRS; i++) {
        double begin = bench_now_s();
        bench_need(saver_take(saver, step, buffer_of, in, &err), &err);
        copies[i] = bench_now_s() - begin;
        beside[i] = copies[i] + run_step(in, step++);
        bench_need(saver_finish(saver, &err), &err);
        saves[i] = bench_now_s() - begin;
        without[i] = run_step(in, step++);
    }
    double with_s = bench_median(beside, PAIRS), without_s = bench_median(without, PAIRS);
    printf("bench recovery/step_while_saving %.3f ratio  # the bar is 1.05; %.0f ms beside a save, "
           "%.0f ms without, of %d each\n",
           with_s / without_s, with_s * 1e3, without_s * 1e3, PAIRS);
    printf("bench recovery/checkpoint_copy_s %.4f s  # in the gap between two steps, %.0f MB\n",
           bench_median(copies, PAIRS), (double)saver_bytes(saver) * 1e-6);
    printf("bench recovery/checkpoint_save_s %.3f s  # beside training, until it is durable\n",
           bench_median(saves, PAIRS));
}

/* Steps of a state in memory of its own, and of one in an estate, in turns. */
static void measure_estate(struct interpreter *plain, const struct program *program,
                           const struct interpreter_config *config)
{
    struct interpreter_config kept = *config;
    struct interpreter *in;
    struct error err;
    double with[PAIRS], without[PAIRS];
    kept.epoch = 1;
    bench_need(estate_open(-1, &kept.estate, &err), &err);
    bench_need(interpreter_prepare(program, &kept, &in, &err), &err);
    interpreter_initialize(in, 1);
    interpreter_publish(in, &(struct standing){.epoch = 1});
    run_step(in, 0);
    for (int i = 0; i < PAIRS; i++) {
        with[i] = run_step(in, 1 + (uint64_t)i);
        without[i] = run_step(plain, 1 + (uint64_t)i);
    }
    double with_s = bench_median(with, PAIRS), without_s = bench_median(without, PAIRS);
    printf(
        "bench recovery/step_that_leaves_its_state %.3f ratio  # %.0f ms in memory that outlives "
        "the process, %.0f ms without, of %d each\n",
        with_s / without_s, with_s * 1e3, without_s * 1e3, PAIRS);
    interpreter_release(in);
    estate_close(kept.estate);
}

void bench_saves(void)
{
    const struct job_model config = {.family = "gpt",
                                     .layers = 6,
                                     .hidden = 384,
                                     .heads = 6,
                                     .seq = BENCH_SEQ,
                                     .vocab = BENCH_VOCAB};
    const char *temporary = getenv("TMPDIR");
    char *folder = xasprintf("%s/gimbal-bench-XXXXXX", temporary ? temporary : "/tmp");
    struct interpreter_config prepare = {
        .device = &device_cpu, .feed = &bench_feed, .optimizer = bench_optimizer};
    struct graph *graph;
    struct program *program;
    struct interpreter *in;
    struct saver *saver;
    struct error err;
    cpu_set_t sets[CPUSETS_MAX];
    int threads;
    if (!mkdtemp(folder)) {
        perror(folder);
        exit(EXIT_FAILURE);
    }
    bench_need(model_build(&config, ELEMENT_F32, &graph, &err), &err);
    struct plan *plan =
        division_plan(&(struct division){.stages = 1, .micro_batches = 1}, graph, BATCH);
    bench_need(lower(graph, plan, 0, &program, &err), &err);
    cpuset_share(2, sets);
    bench_need(cpuset_bind(&sets[0], &threads, &err), &err);
    device_cpu.threads(1);
    bench_need(interpreter_prepare(program, &prepare, &in, &err), &err);
    interpreter_initialize(in, 1);
    struct saver_config saving = {.root = folder,
                                  .origin = {.job = "bench", .epoch = 1, .seed = 1, .batch = BATCH},
                                  .program = program,
                                  .staged = staged};
    bench_need(saver_create(&saving, &saver, &err), &err);
    measure(in, saver);
    saver_destroy(saver);
    measure_estate(in, program, &prepare);
    interpreter_release(in);
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
    char *remove = xasprintf("rm -rf '%s'", folder);
    if (system(remove) != 0)
        exit(EXIT_FAILURE);
    free(remove);
    free(folder);
}
