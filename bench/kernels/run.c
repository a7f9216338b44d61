/* run.c - speed of the CPU's kernels at one layer of GPT 6 x 384, 8 samples of 256 tokens.
 *
 * Usage: run [THREADS]. Prints "bench kernels/NAME VALUE UNIT" lines: first our own and both
 * libraries' matrix products, on which the rule in cpu/sgemm.c rests; then every operation, forward
 * and backward, in f32 and in bf16; and behind each the tokens per second of a training step that
 * is nothing but kernels. Then what LLaMA has beside these. Every time is the shortest of many. */
#include "bench/kernels/measure.h"
#include "bench/kernels/parts.h"

#include <stdio.h>
#include <stdlib.h>

#define LAYERS 6

static double bench_step(const struct device *device, const struct sizes *sizes,
                         enum element element)
{
    const struct {
        const char *name;
        int times;
    } parts[] = {{"embed", 1},        {"position", 1},  {"norm", 2 * LAYERS + 1},
                 {"qkv", 3 * LAYERS}, {"core", LAYERS}, {"out", LAYERS},
                 {"add", 2 * LAYERS}, {"fc1", LAYERS},  {"gelu", LAYERS},
                 {"fc2", LAYERS},     {"logits", 1},    {"loss", 1}};
    double seconds = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        seconds += parts[i].times * bench_operation(device, parts[i].name, sizes, element);
    int64_t h = sizes_get(sizes, 'h');
    int64_t count =
        (int64_t)LAYERS * 12 * h * h + (sizes_get(sizes, 'v') + sizes_get(sizes, 's')) * h;
    return seconds + bench_update(device, (size_t)count);
}

/* With three heads of keys and values. */
static void bench_llama(const struct device *device, struct sizes *sizes)
{
    static const char *const names[] = {"rmsnorm", "rotary", "grouped", "swiglu"};
    sizes_set(sizes, 'k', 3);
    sizes_set(sizes, 'g', 2);
    for (int element = 0; element < ELEMENTS; element++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            bench_operation(device, names[i], sizes, (enum element)element);
}

int main(int argc, char **argv)
{
    char *end = NULL;
    long threads = argc > 1 ? strtol(argv[1], &end, 10) : 1;
    if (argc > 2 || threads < 1 || threads > 1024 || (end && *end)) {
        fprintf(stderr, "usage: %s [THREADS]\n", argv[0]);
        return EXIT_FAILURE;
    }
    const int b = 8, s = 256, h = 384, f = 4 * h;
    struct sizes sizes = {0};
    sizes_set(&sizes, 'b', b);
    sizes_set(&sizes, 's', s);
    sizes_set(&sizes, 'h', h);
    sizes_set(&sizes, 'n', 6);
    sizes_set(&sizes, 'd', h / 6);
    sizes_set(&sizes, 'f', f);
    sizes_set(&sizes, 'v', 256);
    device_cpu.threads((int)threads);

    const int shapes[][2] = {{h, h}, {h, 3 * h}, {h, f}, {f, h}};
    double peak = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double rate = bench_product(b * s, shapes[i][0], shapes[i][1]);
        peak = rate > peak ? rate : peak;
    }
    measure_print("matmul_peak", peak, "GFLOP/s");
    double seconds = bench_step(&device_cpu, &sizes, ELEMENT_F32);
    /* 6 operations per weight and token; attention is left out. */
    double tokens = b * s / seconds;
    measure_print("gpt_6x384_tokens", tokens, "tokens/s");
    measure_print("gpt_6x384_matmul_share",
                  100 * 6e-9 * (12.0 * h * h * LAYERS + 256 * h) * tokens / peak, "%");
    measure_print("gpt_6x384_tokens_bf16", b * s / bench_step(&device_cpu, &sizes, ELEMENT_BF16),
                  "tokens/s");
    bench_llama(&device_cpu, &sizes);
    puts("bench kernels done");
    return EXIT_SUCCESS;
}
