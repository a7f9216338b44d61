/* steps.c - runs training steps of small models, times them instruction by instruction, and fits to
 * the times of a few sizes what each operation costs. */
#include "worker/probe/steps.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/program/lower.h"
#include "worker/interpreter/interpreter.h"
#include "worker/probe/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEPS 3
#define SIZES_MAX 8

/* The index of an operation's rates; sums->count: there are none. */
static size_t find_rates(const struct probe_sums *sums, const char *operation)
{
    size_t i = 0;
    while (i < sums->count && strcmp(sums->rates[i].operation, operation) != 0)
        i++;
    return i;
}

/* Of this thread, so that the time in which others use its core does not count. */
static double processor_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void feed_fill(const void *context, enum program_kind kind, uint64_t first,
                      const struct tensor *tensor, const struct box *box, int32_t *out)
{
    (void)context;
    (void)kind;
    (void)first;
    (void)tensor;
    for (int64_t i = 0; i < box_count(box); i++)
        out[i] = (int32_t)(i * 31 % 256);
}

static double feed_targets(const void *context, enum program_kind kind, uint64_t first,
                           uint64_t samples)
{
    (void)context;
    (void)kind;
    (void)first;
    return (double)samples;
}

static void add_kernel(struct probe_sums *sums, const struct program *program,
                       const struct instruction *instruction, double seconds)
{
    const char *name = program->graph->nodes[instruction->kernel.node].name;
    enum direction direction = instruction->kernel.direction;
    size_t i = find_rates(sums, name);
    if (i == PROFILE_RATES_MAX)
        return;
    if (i == sums->count)
        sums->rates[sums->count++].operation = name;
    sums->rates[i].seconds[direction] += seconds;
    sums->rates[i].flops[direction] += instruction_flops(program, instruction);
    sums->rates[i].bytes[direction] += instruction_bytes(program, instruction);
    sums->rates[i].instructions[direction]++;
}

/* Update the least time of each instruction over the steps: disturbances only ever add time. */
static void take_least(const struct interpreter *in, double *before, double *least)
{
    const double *now = interpreter_seconds(in);
    for (size_t i = 0; i < interpreter_program(in)->instruction_count; i++) {
        least[i] = fmin(least[i], now[i] - before[i]);
        before[i] = now[i];
    }
}

static void sum_up(struct probe_sums *sums, const struct program *program, const double *seconds)
{
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        if (instruction->kind == INSTRUCTION_KERNEL) {
            add_kernel(sums, program, instruction, seconds[i]);
        } else if (instruction->kind != INSTRUCTION_LOAD) {
            sums->other_seconds += seconds[i];
            sums->other_bytes += instruction_bytes(program, instruction);
            sums->other_instructions++;
        }
    }
}

/* The first step warms up. */
static int time_steps(struct interpreter *in, bool waits, struct probe_sums *sums,
                      struct error *err)
{
    const struct program *program = interpreter_program(in);
    double *before = xcalloc(program->instruction_count, sizeof *before);
    double *least = xcalloc(program->instruction_count, sizeof *least);
    double passed = 0, used = 0;
    int rc = 0;
    for (int step = 0; step <= STEPS && rc == 0; step++) {
        struct step_result result;
        rc = interpreter_run(in, PROGRAM_TRAIN, (uint64_t)step, &result, err);
        take_least(in, before, least);
        if (step > 0)
            continue;
        for (size_t i = 0; i < program->instruction_count; i++)
            least[i] = INFINITY;
        passed = clock_s();
        used = processor_time();
    }
    passed = clock_s() - passed;
    used = processor_time() - used;
    if (rc == 0)
        sum_up(sums, program, least);
    sums->passed_s += passed;
    sums->had_s += waits ? passed : used;
    free(before);
    free(least);
    return rc;
}

static int time_model(const struct device *device, const struct job_model *model,
                      enum element element, int64_t samples, struct probe_sums *sums,
                      struct error *err)
{
    struct graph *graph = NULL;
    struct program *program = NULL;
    struct interpreter *in = NULL;
    struct feed feed = {NULL, feed_fill, feed_targets};
    bool waits = device->accelerator != NULL; /* the device works, and this thread waits */
    struct interpreter_config config = {
        .device = device,
        .feed = &feed,
        .optimizer = {.rate = 1e-3, .steps = 10, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8},
        .clock_cb = waits ? NULL : processor_time};
    int rc = model_build(model, element, &graph, err);
    if (rc < 0)
        return rc;
    struct plan *plan = plan_create(1, (int)graph->block_count);
    plan->stages[0].block_count = plan->block_count;
    plan->micro_batch_samples = samples;
    rc = lower(graph, plan, 0, &program, err);
    if (rc == 0)
        rc = interpreter_prepare(program, &config, &in, err);
    if (rc == 0) {
        interpreter_initialize(in, 1);
        rc = interpreter_store_state(in, err);
        interpreter_time(in, true);
    }
    if (rc == 0)
        rc = time_steps(in, waits, sums, err);
    interpreter_release(in);
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
    return rc;
}

int probe_steps(const struct device *device, const struct job_model *size, enum element element,
                int64_t samples, struct probe_sums *sums, struct error *err)
{
    static const struct {
        const char *name;
        bool groups; /* fewer heads of keys and values than of queries */
    } families[] = {{"gpt", false}, {"llama", true}};
    int rc = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families && rc == 0; i++) {
        struct job_model model = *size;
        model.family = families[i].name;
        model.kv_heads = families[i].groups ? model.heads / 2 : 0;
        rc = time_model(device, &model, element, samples, sums, err);
    }
    return rc;
}

/* Fit one direction of an operation, leaving out sizes in which it took no measurable time. */
static void fill_rate(struct profile_rate *rate, enum direction direction,
                      const struct probe_sums *sums, size_t sizes)
{
    struct fit_sample samples[SIZES_MAX];
    double terms[FIT_TERMS];
    size_t count = 0;
    for (size_t s = 0; s < sizes && s < SIZES_MAX; s++) {
        size_t i = find_rates(&sums[s], rate->operation);
        double times = i < sums[s].count ? sums[s].rates[i].instructions[direction] : 0;
        double seconds = times > 0 ? sums[s].rates[i].seconds[direction] / times : 0;
        if (seconds > 0)
            samples[count++] = (struct fit_sample){{1, sums[s].rates[i].flops[direction] / times,
                                                    sums[s].rates[i].bytes[direction] / times},
                                                   seconds};
    }
    fit_work(samples, count, terms);
    rate->fixed_s[direction] = terms[FIT_FIXED];
    rate->seconds_per_flop[direction] = terms[FIT_FLOPS];
    rate->seconds_per_byte[direction] = terms[FIT_BYTES];
}

/* Fit the cost of all instructions that are no kernels. */
static void fill_others(struct profile *profile, const struct probe_sums *sums, size_t sizes)
{
    struct fit_sample samples[SIZES_MAX];
    double terms[FIT_TERMS];
    size_t count = 0;
    for (size_t s = 0; s < sizes && s < SIZES_MAX; s++)
        if (sums[s].other_seconds > 0)
            samples[count++] =
                (struct fit_sample){{1, 0, sums[s].other_bytes / sums[s].other_instructions},
                                    sums[s].other_seconds / sums[s].other_instructions};
    fit_work(samples, count, terms);
    profile->overhead_s = terms[FIT_FIXED];
    profile->seconds_per_byte = terms[FIT_BYTES];
}

void probe_fill_rates(struct profile *profile, enum element element, const struct probe_sums *sums,
                      size_t sizes)
{
    for (size_t i = 0; i < sums->count && profile->rate_count < PROFILE_RATES_MAX; i++) {
        struct profile_rate *rate = &profile->rates[profile->rate_count++];
        strncpy(rate->operation, sums->rates[i].operation, sizeof rate->operation - 1);
        rate->element = element;
        for (int d = 0; d < DIRECTIONS; d++)
            fill_rate(rate, (enum direction)d, sums, sizes);
    }
    size_t product = find_rates(sums, "fc1");
    double per_flop = sums->rates[product].seconds[FORWARD] / sums->rates[product].flops[FORWARD];
    if (element == ELEMENT_BF16) {
        profile->seconds_per_flop_bf16 = per_flop;
        return;
    }
    profile->seconds_per_flop = per_flop;
    fill_others(profile, sums, sizes);
}

void probe_warn_of_bf16(const struct error *why)
{
    log_line(LOG_WARN, "bf16 is planned as if it were f32, as it cannot be measured: %s",
             why->text);
}
