/* probe.c - training steps of small models of two sizes, in f32 and in bf16, and the line through
 * both times of each operation; then messages of two sizes for the links, and both at once. */
#include "worker/probe/internal.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/program/lower.h"
#include "worker/interpreter/interpreter.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEPS 3

double probe_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Of this thread: what others do on its cores at the moment does not count. */
static double processor_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void fail(struct probe *probe, int rc, const struct error *err)
{
    pthread_mutex_lock(&probe->lock);
    if (probe->rc == 0)
        probe->rc = error_set(probe->err, rc, "%s", err->text);
    pthread_mutex_unlock(&probe->lock);
}

static void fill(const void *context, enum program_kind kind, uint64_t first, const struct box *box,
                 bool targets, int32_t *out)
{
    (void)context;
    (void)kind;
    (void)first;
    (void)targets;
    for (int64_t i = 0; i < box_count(box); i++)
        out[i] = (int32_t)(i * 31 % 256);
}

static double targets(const void *context, enum program_kind kind, uint64_t first, uint64_t samples)
{
    (void)context;
    (void)kind;
    (void)first;
    return (double)samples;
}

static void add_kernel(struct sums *sums, const struct program *program,
                       const struct instruction *instruction, double seconds)
{
    const char *name = program->graph->nodes[instruction->kernel.node].operation->name;
    enum direction direction = instruction->kernel.direction;
    size_t i = 0;
    while (i < sums->count && strcmp(sums->rates[i].operation, name) != 0)
        i++;
    if (i == PROFILE_RATES_MAX)
        return;
    if (i == sums->count)
        sums->rates[sums->count++].operation = name;
    sums->rates[i].seconds[direction] += seconds;
    sums->rates[i].flops[direction] += instruction_flops(program, instruction);
    sums->rates[i].instructions[direction]++;
}

/* share: of the time that passed, what this thread had the processor for. */
static void collect(struct sums *sums, const struct interpreter *in, const double *before,
                    double share)
{
    const struct program *program = interpreter_program(in);
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        double seconds = (interpreter_seconds(in)[i] - before[i]) * share / STEPS;
        if (instruction->kind == INSTRUCTION_KERNEL) {
            add_kernel(sums, program, instruction, seconds);
        } else if (instruction->kind != INSTRUCTION_LOAD) {
            sums->other_seconds += seconds;
            sums->other_bytes += instruction_bytes(program, instruction);
            sums->other_instructions++;
        }
    }
}

static int time_model(const struct device *device, const struct model_config *model,
                      int64_t samples, struct sums *sums, struct error *err)
{
    struct graph *graph = NULL;
    struct program *program = NULL;
    struct interpreter *in = NULL;
    struct feed feed = {NULL, fill, targets};
    struct interpreter_config config = {
        .device = device,
        .feed = &feed,
        .optimizer = {.rate = 1e-3, .steps = 10, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8}};
    int rc = model_build(model, &graph, err);
    if (rc < 0)
        return rc;
    struct plan *plan = plan_create(1, (int)graph->block_count);
    plan->stages[0].block_count = plan->block_count;
    plan->micro_batch_samples = samples;
    rc = lower(graph, plan, 0, &program, err);
    if (rc == 0)
        rc = interpreter_prepare(program, &config, &in, err);
    double *before = NULL;
    if (rc == 0) {
        interpreter_initialize(in, 1);
        rc = interpreter_store_state(in, err);
        interpreter_time(in, true);
        before = xcalloc(program->instruction_count, sizeof *before);
    }
    double passed = 0, used = 0;
    for (int step = 0; step <= STEPS && rc == 0; step++) {
        struct step_result result;
        if (step == 1) {
            memcpy(before, interpreter_seconds(in), program->instruction_count * sizeof *before);
            passed = probe_now();
            used = processor_time();
        }
        rc = interpreter_run(in, PROGRAM_TRAIN, (uint64_t)step, &result, err);
    }
    bool waits = device->accelerator != NULL; /* it is not this thread that works */
    passed = probe_now() - passed;
    used = waits ? passed : processor_time() - used;
    if (rc == 0)
        collect(sums, in, before, used / passed);
    sums->passed_s += passed;
    sums->had_s += used;
    free(before);
    interpreter_release(in);
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
    return rc;
}

int probe_steps(const struct device *device, const struct model_config *size, enum element element,
                int64_t samples, struct sums *sums, struct error *err)
{
    static const struct {
        const char *name;
        bool groups; /* it has fewer heads of keys and values than of queries */
    } families[] = {{"gpt", false}, {"llama", true}};
    int rc = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families && rc == 0; i++) {
        struct model_config model = *size;
        model.family = families[i].name;
        model.kv_heads = families[i].groups ? model.heads / 2 : 0;
        model.element = element;
        rc = time_model(device, &model, samples, sums, err);
    }
    return rc;
}

/* Two sizes between which most micro-batches of small models lie: 1,024 tokens and 64. */
static const struct model_config large = {
    .layers = 1, .hidden = 256, .heads = 8, .seq = 128, .vocab = 256};
static const struct model_config small = {
    .layers = 1, .hidden = 64, .heads = 4, .seq = 64, .vocab = 256};

/* The line through two measured points: work -> seconds. */
static void fit(double work, double seconds, double less_work, double less_seconds, double *fixed,
                double *slope)
{
    *slope = work > less_work ? fmax(0, (seconds - less_seconds) / (work - less_work)) : 0;
    *fixed = fmax(0, less_seconds - *slope * less_work);
}

void probe_fill_rates(struct profile *profile, enum element element, const struct sums *big,
                      const struct sums *little, double crowd)
{
    double seconds = 0, flops = 0;
    for (size_t i = 0; i < big->count && profile->rate_count < PROFILE_RATES_MAX; i++) {
        struct profile_rate *rate = &profile->rates[profile->rate_count++];
        strncpy(rate->operation, big->rates[i].operation, sizeof rate->operation - 1);
        rate->element = element;
        for (int d = 0; d < DIRECTIONS; d++) {
            double count = big->rates[i].instructions[d];
            if (count == 0)
                continue;
            fit(big->rates[i].flops[d] / count, big->rates[i].seconds[d] / count,
                little->rates[i].flops[d] / count, little->rates[i].seconds[d] / count,
                &rate->fixed_s[d], &rate->seconds_per_flop[d]);
            rate->fixed_s[d] *= crowd;
            rate->seconds_per_flop[d] *= crowd;
        }
        if (strcmp(rate->operation, "fc1") == 0) {
            seconds = big->rates[i].seconds[FORWARD];
            flops = big->rates[i].flops[FORWARD];
        }
    }
    if (element == ELEMENT_BF16) {
        profile->seconds_per_flop_bf16 = crowd * seconds / flops;
        return;
    }
    profile->seconds_per_flop = crowd * seconds / flops;
    double count = big->other_instructions;
    fit(big->other_bytes / count, big->other_seconds / count, little->other_bytes / count,
        little->other_seconds / count, &profile->overhead_s, &profile->seconds_per_byte);
    profile->overhead_s *= crowd;
    profile->seconds_per_byte *= crowd;
}

void probe_warn_of_bf16(const struct error *why)
{
    log_line(LOG_WARN, "bf16 is planned as if it were f32, as it cannot be measured: %s",
             why->text);
}

static int time_kernels(struct prober *prober, enum element element, struct error *err)
{
    const struct device *device = prober->probe->device;
    struct sums big = {0}, little = {0};
    int rc = probe_steps(device, &large, element, 8, &big, err);
    if (rc == 0)
        rc = probe_steps(device, &small, element, 1, &little, err);
    if (rc == 0)
        probe_fill_rates(&prober->probe->profiles[prober->index], element, &big, &little,
                         prober->probe->crowd);
    prober->passed_s += big.passed_s + little.passed_s;
    prober->had_s += big.had_s + little.had_s;
    return rc;
}

static int time_elements(struct prober *prober, struct error *err)
{
    struct error why;
    pthread_barrier_wait(&prober->probe->barrier); /* all devices work at the same time */
    int rc = time_kernels(prober, ELEMENT_F32, err);
    if (rc == 0 && time_kernels(prober, ELEMENT_BF16, &why) < 0)
        probe_warn_of_bf16(&why);
    return rc;
}

static void tell_share(struct prober *prober)
{
    struct probe *probe = prober->probe;
    double share = prober->passed_s > 0 ? prober->had_s / prober->passed_s : 1;
    pthread_mutex_lock(&probe->lock);
    probe->share = fmin(probe->share, share);
    pthread_mutex_unlock(&probe->lock);
}

static bool all_is_well(struct probe *probe)
{
    pthread_mutex_lock(&probe->lock);
    bool well = probe->rc == 0;
    pthread_mutex_unlock(&probe->lock);
    return well;
}

static void *prober_run(void *context)
{
    struct prober *prober = context;
    struct probe *probe = prober->probe;
    struct profile_link link = {0};
    double overlap = PROFILE_OVERLAP;
    struct error err = {""};
    int threads, set = prober->index % probe->devices;
    int rc = cpuset_bind(&probe->sets[set], &threads, &err);
    if (probe->device->threads)
        probe->device->threads(threads);
    if (prober->index < probe->devices) {
        int rc2 = time_elements(prober, &err);
        rc = rc < 0 ? rc : rc2;
        tell_share(prober);
    }
    pthread_barrier_wait(&probe->barrier);
    if (rc < 0)
        fail(probe, rc, &err);
    pthread_barrier_wait(&probe->barrier);
    if (all_is_well(probe)) {
        rc = probe_links(prober, &link, &overlap, &err);
        if (rc < 0)
            fail(probe, rc, &err);
    }
    if (prober->index < probe->devices) {
        probe->profiles[prober->index].host = link;
        probe->profiles[prober->index].network = link;
        probe->profiles[prober->index].overlap = overlap;
    }
    return NULL;
}

/* With one device: the second rank of its links. */
static void *companion_run(void *context)
{
    struct prober *prober = context;
    pthread_barrier_wait(&prober->probe->barrier);
    return prober_run(context);
}

int probe_run(const cpu_set_t *sets, int count, const struct device *device,
              const struct collectives *collectives, double crowd, struct profile *out,
              double *share, struct error *err)
{
    struct probe probe = {.crowd = crowd,
                          .share = 1,
                          .sets = sets,
                          .device = device,
                          .collectives = collectives,
                          .profiles = out,
                          .devices = count,
                          .ranks = count > 1 ? count : 2,
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .err = err};
    memset(out, 0, (size_t)count * sizeof *out);
    probe.meeting = meeting_create(MEETING_STAYING);
    probe.hub = local_hub_create(probe.ranks);
    pthread_barrier_init(&probe.barrier, NULL, (unsigned)probe.ranks);
    struct prober *probers = xcalloc((size_t)probe.ranks, sizeof *probers);
    int started = 0;
    for (; started < probe.ranks; started++) {
        probers[started] = (struct prober){.probe = &probe, .index = started};
        if (pthread_create(&probers[started].thread, NULL,
                           started < count ? prober_run : companion_run, &probers[started]) != 0)
            abort();
    }
    for (int i = 0; i < started; i++)
        pthread_join(probers[i].thread, NULL);
    meeting_destroy(probe.meeting);
    free(probers);
    pthread_barrier_destroy(&probe.barrier);
    local_hub_destroy(probe.hub);
    *share = probe.share;
    return probe.rc;
}
