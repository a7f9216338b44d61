/* run.c - measures the speed of the CPU kernels in one layer of GPT 6 x 384, 8 samples of 256
 * tokens.
 *
 * Usage: run [THREADS [products]]. Prints "bench kernels/NAME VALUE UNIT" lines: first matrix
 * products by our own kernels and by the libraries, of the layers and of an attention block, on
 * which the rules in cpu/product.c rest; then every operation, forward and backward, in f32 and in
 * bf16, and after each element type the tokens per second of a training step that consists of
 * kernels only; then the operations that LLaMA has in addition. Every time is the shortest of
 * many. */
#include "bench/kernels/measure.h"
#include "bench/kernels/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS 6

static double bench_step(const struct device *device, const struct sizes *sizes,
                         enum element element)
{
    const struct {
        const char *name;
        int times;
    } parts[] = {{"embed", 1},
                 {"position", 1},
                 {"norm", 2 * LAYERS + 1},
                 {"qkv", 3 * LAYERS},
                 {"causal_attention", LAYERS},
                 {"out", LAYERS},
                 {"add", 2 * LAYERS},
                 {"fc1", LAYERS},
                 {"gelu", LAYERS},
                 {"fc2", LAYERS},
                 {"logits", 1},
                 {"loss", 1}};
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
    static const char *const names[] = {"rmsnorm", "rotary", "grouped_attention", "swiglu"};
    sizes_set(sizes, 'k', 3);
    sizes_set(sizes, 'g', 2);
    for (int element = 0; element < ELEMENTS; element++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            bench_operation(device, names[i], sizes, (enum element)element);
}

/* Of layers and of attention's blocks; the best rate of f32. */
static double bench_products(int rows, int hidden)
{
    const int shapes[][3] = {
        {rows, hidden, hidden},
        {rows, hidden, 3 * hidden},
        {rows, hidden, 4 * hidden},
        {rows, 4 * hidden, hidden},
        {64, 64, 256},
        {64, 256, 64},
    };
    double peak = 0;
    for (int element = 0; element < ELEMENTS; element++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            double rate =
                bench_product(shapes[i][0], shapes[i][1], shapes[i][2], (enum element)element);
            if (element == ELEMENT_F32 && rate > peak)
                peak = rate;
        }
    measure_print("matmul_peak", peak, "GFLOP/s");
    return peak;
}

int main(int argc, char **argv)
{
    char *end = NULL;
    bool products_only = argc == 3 && strcmp(argv[2], "products") == 0;
    long threads = argc > 1 ? strtol(argv[1], &end, 10) : 1;
    if (argc > 2 + products_only || threads < 1 || threads > 1024 || (end && *end)) {
        fprintf(stderr, "usage: %s [THREADS [products]]\n", argv[0]);
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

    double peak = bench_products(b * s, h);
    if (products_only) {
        puts("bench kernels done");
        return EXIT_SUCCESS;
    }
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
