/* training.c - lowers a plan of one rank, and runs it with an interpreter. */
#include "bench/gpu/training.h"

#include "bench/bench.h"
#include "bench/division.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/program/lower.h"

#include <stdlib.h>
#include <string.h>

#define WAITS 200
#define WARM_UP 20               /* steps in which the rate rises */
#define PLACES ((size_t)1 << 20) /* of the data set, which begins anew behind them */
#define WORDS 512                /* of its language */
#define SURPRISES 8              /* one of so many words does not follow from the one before */

struct training {
    struct training_config config;
    int32_t *text; /* PLACES tokens */
    struct feed feed;
    struct graph *graph;
    struct plan *plan;
    struct program *program;
    struct interpreter *in;
    uint64_t step, free_before;
};

static uint64_t free_bytes(const struct training *training)
{
    const struct accelerator *accelerator = training->config.device->accelerator;
    struct error err;
    uint64_t bytes = 0;
    if (accelerator)
        bench_need(accelerator->free_bytes(&bytes, &err), &err);
    return bytes;
}

/* A text that can be learned: losses of noise would depend on how sums are rounded, after some
 * steps. In memory, since a data set is read and not computed. */
static int32_t *write_text(int64_t vocab)
{
    const uint64_t words = vocab < WORDS ? (uint64_t)vocab : WORDS;
    int32_t *text = xcalloc(PLACES, sizeof *text);
    for (size_t i = 1; i < PLACES; i++)
        text[i] = random_below(1, 0, i, SURPRISES) > 0
                      ? (int32_t)random_below(2, 0, (uint64_t)text[i - 1], words)
                      : (int32_t)random_below(3, 0, i, words);
    return text;
}

static void fill(const void *context, enum program_kind kind, uint64_t first,
                 const struct tensor *tensor, const struct box *box, int32_t *out)
{
    const struct training *training = context;
    const uint64_t seq = (uint64_t)training->config.model.seq;
    (void)kind;
    for (int64_t sample = box->low[0]; sample < box->high[0]; sample++)
        for (int64_t place = box->low[1]; place < box->high[1]; place++)
            *out++ =
                training
                    ->text[((first + (uint64_t)sample) * seq + (uint64_t)place + tensor->targets) %
                           PLACES];
}

static double count_targets(const void *context, enum program_kind kind, uint64_t first,
                            uint64_t samples)
{
    const struct training *training = context;
    (void)kind;
    (void)first;
    return (double)(samples * (uint64_t)training->config.model.seq);
}

/* The config's graph, its plan of one rank, and the program of that. */
static struct training *lowered(const struct training_config *config)
{
    struct training *training = xcalloc(1, sizeof *training);
    struct error err;
    training->config = *config;
    bench_need(model_build(&config->model, config->element, &training->graph, &err), &err);
    training->plan = division_plan(&(struct division){.stages = 1, .micro_batches = 1},
                                   training->graph, (int)config->samples);
    bench_need(lower(training->graph, training->plan, 0, &training->program, &err), &err);
    return training;
}

struct training *training_open(const struct training_config *config)
{
    struct training *training = lowered(config);
    struct error err;
    training->text = write_text(config->model.vocab);
    training->feed = (struct feed){training, fill, count_targets};
    training->free_before = free_bytes(training);
    struct optimizer optimizer = bench_optimizer;
    optimizer.rate = 3e-4;
    optimizer.warmup = WARM_UP;
    const struct interpreter_config prepare = {.device = config->device,
                                               .feed = &training->feed,
                                               .one_by_one = config->one_by_one,
                                               .optimizer = optimizer};
    bench_need(interpreter_prepare(training->program, &prepare, &training->in, &err), &err);
    interpreter_initialize(training->in, 1);
    bench_need(interpreter_store_state(training->in, &err), &err);
    return training;
}

uint64_t training_needs(const struct training_config *config)
{
    struct training *training = lowered(config);
    uint64_t bytes = program_bytes(training->program);
    training_close(training);
    return bytes;
}

void training_close(struct training *training)
{
    interpreter_release(training->in);
    program_destroy(training->program);
    plan_destroy(training->plan);
    graph_destroy(training->graph);
    free(training->text);
    free(training);
}

double training_steps(struct training *training, int count, double *losses)
{
    struct step_result result;
    struct error err;
    double begin = bench_now_s();
    for (int i = 0; i < count; i++) {
        bench_need(interpreter_run(training->in, PROGRAM_TRAIN, training->step++, &result, &err),
                   &err);
        losses[i] = result.loss;
    }
    return bench_now_s() - begin;
}

/* To give a stream the least there is, and to wait for it. */
static double wait_for_nothing(const struct device *device)
{
    const struct accelerator *accelerator = device->accelerator;
    struct device_stream *lane;
    struct error err;
    void *memory;
    bench_need(accelerator->stream_open(&lane, true, &err), &err);
    bench_need(accelerator->reserve(sizeof(float), &memory, &err), &err);
    accelerator->enter(lane);
    double begin = 0;
    for (int i = -WAITS; i < WAITS; i++) {
        if (i == 0)
            begin = bench_now_s();
        device->clear(memory, sizeof(float));
        bench_need(accelerator->finish(&err), &err);
    }
    double seconds = (bench_now_s() - begin) / WAITS;
    accelerator->enter(NULL);
    accelerator->release(memory);
    accelerator->stream_close(lane);
    return seconds;
}

struct training_parts training_take_apart(struct training *training, int steps)
{
    struct training_parts parts = {.steps = steps,
                                   .wait_s = wait_for_nothing(training->config.device)};
    double *losses = xcalloc((size_t)steps, sizeof *losses), seconds = 0;
    interpreter_time(training->in, true);
    training_steps(training, steps, losses);
    interpreter_time(training->in, false);
    for (size_t i = 0; i < training->program->instruction_count; i++) {
        seconds += interpreter_seconds(training->in)[i];
        parts.kernels += interpreter_runs(training->in)[i];
    }
    parts.kernels /= (uint64_t)steps;
    parts.kernels_s = seconds / steps - (double)parts.kernels * parts.wait_s;
    free(losses);
    return parts;
}

static int compare_parts(const void *a, const void *b)
{
    double x = ((const struct training_part *)a)->seconds;
    double y = ((const struct training_part *)b)->seconds;
    return (x < y) - (x > y);
}

int training_list_parts(const struct training *training, const struct training_parts *whole,
                        struct training_part parts[TRAINING_PARTS_MAX])
{
    const struct program *program = training->program;
    int count = 0;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        const char *name = instruction_name(program, instruction);
        const char *section = section_name(instruction_section(program, instruction));
        uint64_t runs = interpreter_runs(training->in)[i];
        int at = 0;
        while (at < count &&
               (strcmp(parts[at].name, name) != 0 || strcmp(parts[at].section, section) != 0))
            at++;
        if (runs == 0 || at == TRAINING_PARTS_MAX)
            continue;
        if (at == count)
            parts[count++] = (struct training_part){.name = name, .section = section};
        parts[at].runs += runs / (uint64_t)whole->steps;
        parts[at].seconds +=
            (interpreter_seconds(training->in)[i] - (double)runs * whole->wait_s) / whole->steps;
    }
    qsort(parts, (size_t)count, sizeof *parts, compare_parts);
    return count;
}

uint64_t training_reserved(const struct training *training)
{
    struct error err;
    uint64_t libraries = 0;
    const struct accelerator *accelerator = training->config.device->accelerator;
    if (accelerator)
        bench_need(accelerator->libraries(&libraries, &err), &err);
    return program_bytes(training->program) + libraries;
}

uint64_t training_taken(const struct training *training)
{
    uint64_t left = free_bytes(training);
    return left < training->free_before ? training->free_before - left : 0;
}
