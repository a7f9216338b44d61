/* run.c - measures an NVIDIA device: GPT-2 and a LLaMA in bf16 compared with PyTorch in the same
 * run, what makes up a step, and the distance of losses after the same steps on the device and on
 * this machine's processors, and in bf16 and f32. Usage: run [ROW ...]. A row is a model,
 * gpt2_124m, or "distance"; by default all rows run.
 *
 * Speed is the median of ROUNDS rounds of STEPS steps, after WARM_UP steps in which stretches of a
 * step are recorded. PyTorch's rounds lie between ours, and both hold their memory throughout, so
 * on a device with too little memory for both a step has fewer samples. A token takes six
 * operations per parameter (Kaplan et al., arXiv 2001.08361). Distance is the largest relative
 * difference of a loss, with 2 samples of 256 tokens and STEPS steps on both. */
#include "bench/bench.h"
#include "bench/gpu/training.h"
#include "bench/training/peer.h"
#include "common/base/units.h"
#include "worker/kernels/devices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS 20
#define WARM_UP 5
#define ROUNDS 3
/* Of the device's memory ours may take a share of this: PyTorch is given twice as much, and what
 * products are chosen in is beside both. */
#define SHARE 3

struct row {
    const char *name, *family;
    int64_t layers, hidden, heads, ffn, seq, vocab, samples;
    enum element element;
    double parameters;
    double goal; /* tokens/s on an H200 that we are after; 0: none is set */
};

static const struct row rows[] = {
    {"gpt2_124m", "gpt", 12, 768, 12, 3072, 1024, 50304, 64, ELEMENT_BF16, 124e6, 590e3},
    {"gpt2_355m", "gpt", 24, 1024, 16, 4096, 1024, 50304, 32, ELEMENT_BF16, 355e6, 217e3},
    {"gpt2_774m", "gpt", 36, 1280, 20, 5120, 1024, 50304, 32, ELEMENT_BF16, 774e6, 106e3},
    {"gpt2_1558m", "gpt", 48, 1600, 25, 6400, 1024, 50304, 16, ELEMENT_BF16, 1558e6, 53.5e3},
    {"llama_1350m", "llama", 24, 2048, 16, 5504, 2048, 32000, 8, ELEMENT_BF16, 1345e6, 66e3},
    {"gpt2_124m_f32", "gpt", 12, 768, 12, 3072, 1024, 50304, 8, ELEMENT_F32, 124e6, 0},
};

static struct training_config config_of(const struct device *device, const struct row *row,
                                        int64_t seq, int64_t samples, enum element element)
{
    return (struct training_config){.device = device,
                                    .samples = samples,
                                    .element = element,
                                    .model = {.family = row->family,
                                              .layers = row->layers,
                                              .hidden = row->hidden,
                                              .heads = row->heads,
                                              .seq = seq,
                                              .vocab = row->vocab,
                                              .ffn = row->ffn}};
}

static void print_line(const char *row, const char *what, double value, const char *unit)
{
    printf("bench gpu/%s_%s %.4g %s", row, what, value, unit);
}

/* NULL: PyTorch is not there, and has said so. */
static struct peer *open_peer(const struct training_config *config)
{
    const struct peer_config of = {&config->model, config->element, (int)config->samples, "cuda",
                                   "compile"};
    struct peer *peer;
    struct error err;
    if (peer_open(&of, &peer, &err) == 0)
        return peer;
    fprintf(stderr, "%s\n", err.text);
    return NULL;
}

/* The row's training with as many of its samples as there is memory for. */
static struct training_config fitting(const struct device *device, const struct row *row)
{
    struct training_config config = config_of(device, row, row->seq, row->samples, row->element);
    struct error err;
    uint64_t room = 0;
    bench_need(device->accelerator->free_bytes(&room, &err), &err);
    while (config.samples > 1 && SHARE * training_needs(&config) > room)
        config.samples /= 2;
    return config;
}

/* Tokens/s. */
struct speeds {
    double ours, theirs; /* as a user has it; PyTorch */
};

static double tokens_of(const struct training_config *config)
{
    return (double)(config->model.seq * config->samples * STEPS);
}

static struct speeds race(struct training *ours, struct peer *peer, double tokens, double losses[])
{
    double us[ROUNDS], they[ROUNDS] = {0};
    training_steps(ours, WARM_UP, losses);
    for (int i = 0; i < ROUNDS; i++) {
        us[i] = tokens / training_steps(ours, STEPS, losses);
        if (peer)
            they[i] = tokens / peer_seconds(peer, STEPS);
    }
    return (struct speeds){bench_median(us, ROUNDS), bench_median(they, ROUNDS)};
}

static void print_speeds(const struct row *row, const struct training_config *config,
                         const struct speeds *speeds, const struct peer *peer, double last_loss)
{
    double step_s = tokens_of(config) / STEPS / speeds->ours;
    print_line(row->name, "tokens_per_s", speeds->ours, "tokens/s");
    printf("  # %lld samples: %.2f ms a step, %.1f TFLOP/s, loss %.4f", (long long)config->samples,
           1e3 * step_s, 6e-12 * row->parameters * speeds->ours, last_loss);
    if (row->goal > 0)
        printf("; %.3f of the %.0f that an H200 is to reach", speeds->ours / row->goal, row->goal);
    printf("\n");
    if (!peer) {
        printf("bench gpu/%s_vs_torch - skipped PyTorch does not train here\n", row->name);
        return;
    }
    print_line(row->name, "vs_torch", speeds->ours / speeds->theirs, "ratio");
    printf("  # PyTorch %s, compiled: %.0f tokens/s\n", peer_release(peer), speeds->theirs);
}

/* When the recorded one has given its memory back. */
static void bench_recording(const struct row *row, struct training_config config, double recorded)
{
    double losses[STEPS];
    config.one_by_one = true;
    struct training *alone = training_open(&config);
    const double speed = race(alone, NULL, tokens_of(&config), losses).ours;
    training_close(alone);
    print_line(row->name, "recorded_vs_one_by_one", recorded / speed, "ratio");
    printf("  # stretches of a step launched as one, against each kernel: %.0f tokens/s\n", speed);
    fflush(stdout);
}

static void print_parts(const struct row *row, struct training *training, double step_s)
{
    char reserved[32], taken[32];
    const struct training_parts parts = training_take_apart(training, 3);
    print_line(row->name, "kernels_share", parts.kernels_s / step_s, "ratio");
    printf("  # %llu kernels and copies, waited for one by one, take %.2f ms, a step %.2f; "
           "%.1f us for each wait are taken off\n",
           (unsigned long long)parts.kernels, 1e3 * parts.kernels_s, 1e3 * step_s,
           1e6 * parts.wait_s);
    struct training_part list[TRAINING_PARTS_MAX];
    int count = training_list_parts(training, &parts, list);
    for (int i = 0; i < count; i++)
        printf("bench gpu/%s_%s_%s %.4g ms  # %llu times, each waited for\n", row->name,
               list[i].section, list[i].name, 1e3 * list[i].seconds,
               (unsigned long long)list[i].runs);
    units_print_bytes(reserved, sizeof reserved, (double)training_reserved(training));
    units_print_bytes(taken, sizeof taken, (double)training_taken(training));
    print_line(row->name, "memory_bytes", (double)training_reserved(training), "bytes");
    printf("  # %s reserved; the device has %s less than before\n", reserved, taken);
    fflush(stdout);
}

/* PyTorch first: it takes what it needs, and then is there. */
static void bench_speed(const struct device *device, const struct row *row)
{
    const struct training_config config = fitting(device, row);
    struct peer *peer = open_peer(&config);
    double losses[STEPS];
    struct training *ours = training_open(&config);
    const struct speeds speeds = race(ours, peer, tokens_of(&config), losses);
    print_speeds(row, &config, &speeds, peer, losses[STEPS - 1]);
    print_parts(row, ours, tokens_of(&config) / STEPS / speeds.ours); /* the peer idles */
    peer_close(peer);
    training_close(ours);
    bench_recording(row, config, speeds.ours);
}

/* The largest relative difference of a loss. */
static double distance(const double a[STEPS], const double b[STEPS])
{
    double worst = 0;
    for (int i = 0; i < STEPS; i++)
        worst = fmax(worst, fabs(a[i] / b[i] - 1));
    return worst;
}

static void train_short(const struct device *device, enum element element, double losses[STEPS])
{
    const struct training_config config = config_of(device, &rows[0], 256, 2, element);
    struct training *training = training_open(&config);
    training_steps(training, STEPS, losses);
    training_close(training);
}

static void bench_distance(const struct device *device)
{
    double narrow[STEPS], wide[STEPS], here[STEPS];
    train_short(device, ELEMENT_BF16, narrow);
    train_short(device, ELEMENT_F32, wide);
    print_line("gpt2_124m", "loss_distance", distance(narrow, wide), "ratio");
    printf("  # to f32 in %d steps; 1e-2 is the limit; loss %.6f to %.6f\n", STEPS, narrow[0],
           narrow[STEPS - 1]);
    fflush(stdout);
    device_cpu.threads((int)sysconf(_SC_NPROCESSORS_ONLN));
    train_short(&device_cpu, ELEMENT_F32, here);
    print_line("gpt2_124m_f32", "loss_distance", distance(wide, here), "ratio");
    printf("  # to the processors' in %d steps; 1e-5 is the limit between plans; loss %.6f to "
           "%.6f\n",
           STEPS, wide[0], wide[STEPS - 1]);
}

/* NULL: it is no model's. */
static const struct row *find_row(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static void bench_row(const struct device *device, const char *name)
{
    const struct row *row = find_row(name);
    if (row)
        bench_speed(device, row);
    else
        bench_distance(device);
}

static bool is_row(const char *name)
{
    return find_row(name) || strcmp(name, "distance") == 0;
}

int main(int argc, char **argv)
{
    const struct device *device;
    struct error err;
    for (int i = 1; i < argc; i++)
        if (!is_row(argv[i])) {
            fprintf(stderr, "there is no row '%s'; there are: distance", argv[i]);
            for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
                fprintf(stderr, ", %s", rows[row].name);
            fprintf(stderr, "\n");
            return 64;
        }
    if (device_load("cuda", &device, &err) < 0 || device->probe(&err) < 0) {
        printf("bench gpu/gpt2_124m_tokens_per_s - skipped %s\nbench gpu done\n", err.text);
        return EXIT_SUCCESS;
    }
    for (int i = 1; i < argc; i++)
        bench_row(device, argv[i]);
    for (size_t i = 0; argc < 2 && i < sizeof rows / sizeof *rows; i++)
        bench_speed(device, &rows[i]);
    if (argc < 2)
        bench_distance(device);
    printf("bench gpu done\n");
    return EXIT_SUCCESS;
}
