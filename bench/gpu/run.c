/* run.c - an NVIDIA device: GPT-2 124M in f32 and bf16, its speed, how far f32 is from this
 * machine's processors after the same steps, and bf16 from f32.
 *
 * Speed: 8 samples of 1,024 tokens a step in f32, 32 in bf16, the mean of STEPS steps behind the
 * first WARM_UP, whose products are being chosen. Distance: 2 samples of 256 tokens, STEPS steps on
 * both, the largest relative difference of a loss. */
#include "bench/bench.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/models/model.h"
#include "common/program/lower.h"
#include "worker/kernels/modules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STEPS 20
#define WARM_UP 3

struct run {
    double loss[STEPS], seconds; /* of a step */
    uint64_t reserved;
};

static double count_targets(const void *context, enum program_kind kind, uint64_t first,
                            uint64_t samples)
{
    const int64_t *seq = context;
    (void)kind;
    (void)first;
    return (double)samples * (double)*seq;
}

static void fill(const void *context, enum program_kind kind, uint64_t first, const struct box *box,
                 bool targets, int32_t *out)
{
    (void)context;
    bench_feed.fill(bench_feed.context, kind, first, box, targets, out);
}

static void train(const struct device *device, enum element element, int64_t seq, int64_t samples,
                  struct run *out)
{
    struct model_config model = {.family = "gpt",
                                 .layers = 12,
                                 .hidden = 768,
                                 .heads = 12,
                                 .seq = seq,
                                 .vocab = 50304,
                                 .ffn = 3072,
                                 .element = element};
    struct graph *graph;
    struct program *program;
    struct interpreter *in;
    struct step_result result;
    struct error err;
    struct feed feed = {&seq, fill, count_targets};
    struct interpreter_config config = {.device = device,
                                        .feed = &feed,
                                        .optimizer = {.rate = 3e-4,
                                                      .steps = 1000,
                                                      .beta1 = 0.9,
                                                      .beta2 = 0.95,
                                                      .epsilon = 1e-8,
                                                      .decay = 0.1,
                                                      .clip = 1}};
    bench_need(model_build(&model, &graph, &err), &err);
    struct plan *plan = plan_create(1, (int)graph->block_count);
    plan->stages[0].block_count = plan->block_count;
    plan->micro_batches = 1;
    plan->micro_batch_samples = samples;
    bench_need(lower(graph, plan, 0, &program, &err), &err);
    bench_need(interpreter_prepare(program, &config, &in, &err), &err);
    interpreter_initialize(in, 1);
    bench_need(interpreter_store_state(in, &err), &err);
    uint64_t libraries = 0;
    if (device->accelerator)
        bench_need(device->accelerator->libraries(&libraries, &err), &err);
    double begin = 0;
    for (uint64_t step = 0; step < STEPS; step++) {
        if (step == WARM_UP)
            begin = bench_now_s();
        bench_need(interpreter_run(in, PROGRAM_TRAIN, step, &result, &err), &err);
        out->loss[step] = result.loss;
    }
    out->seconds = (bench_now_s() - begin) / (STEPS - WARM_UP);
    out->reserved = program_bytes(program) + libraries;
    interpreter_release(in);
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
}

static const char *const names[] = {[ELEMENT_F32] = "f32", [ELEMENT_BF16] = "bf16"};

static void bench_speed(const struct device *device, enum element element, int64_t samples)
{
    struct run run;
    char reserved[32];
    int64_t seq = 1024;
    train(device, element, seq, samples, &run);
    units_print_bytes(reserved, sizeof reserved, (double)run.reserved);
    /* Kaplan et al., arXiv 2001.08361: six operations a parameter and token. */
    double tokens = (double)(seq * samples) / run.seconds, parameters = 124e6;
    printf("bench gpu/gpt2_124m_%s_tokens_per_s %.0f tokens/s  # %.2f ms a step, %.1f TFLOP/s, "
           "%s reserved, loss %.4f to %.4f\n",
           names[element], tokens, 1e3 * run.seconds, 6e-12 * parameters * tokens, reserved,
           run.loss[0], run.loss[STEPS - 1]);
    fflush(stdout);
}

/* The largest relative difference of a loss. */
static double distance(const struct run *a, const struct run *b)
{
    double worst = 0;
    for (int i = 0; i < STEPS; i++)
        worst = fmax(worst, fabs(a->loss[i] / b->loss[i] - 1));
    return worst;
}

static void bench_distance(const struct device *device)
{
    struct run narrow, wide, here;
    train(device, ELEMENT_BF16, 256, 2, &narrow);
    train(device, ELEMENT_F32, 256, 2, &wide);
    printf("bench gpu/gpt2_124m_bf16_loss_distance %.2g ratio  # to f32 in %d steps; 1e-2 is the "
           "limit; loss %.6f to %.6f\n",
           distance(&narrow, &wide), STEPS, narrow.loss[0], narrow.loss[STEPS - 1]);
    fflush(stdout);
    device_cpu.threads((int)sysconf(_SC_NPROCESSORS_ONLN));
    train(&device_cpu, ELEMENT_F32, 256, 2, &here);
    printf("bench gpu/gpt2_124m_f32_loss_distance %.2g ratio  # to the processors' in %d steps; "
           "1e-5 is the limit between plans; loss %.6f to %.6f\n",
           distance(&wide, &here), STEPS, wide.loss[0], wide.loss[STEPS - 1]);
}

int main(void)
{
    const struct device *device;
    struct error err;
    if (device_load("cuda", &device, &err) < 0 || device->probe(&err) < 0) {
        printf("bench gpu/gpt2_124m_bf16_tokens_per_s - skipped %s\nbench gpu done\n", err.text);
        return EXIT_SUCCESS;
    }
    bench_speed(device, ELEMENT_BF16, 32);
    bench_speed(device, ELEMENT_F32, 8);
    bench_distance(device);
    printf("bench gpu done\n");
    return EXIT_SUCCESS;
}
