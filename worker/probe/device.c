/* device.c - measures a device with memory of its own: kernels, memory, and copies to and from the
 * host. */
#include "worker/probe/internal.h"

#include <math.h>

/* From almost nothing to what fills the largest devices; each has more work than the one before. */
static const struct {
    struct model_config model;
    int64_t samples;
} sizes[] = {
    {{.layers = 1, .hidden = 64, .heads = 2, .seq = 16, .vocab = 256}, 1},
    {{.layers = 1, .hidden = 64, .heads = 2, .seq = 32, .vocab = 256}, 2},
    {{.layers = 1, .hidden = 256, .heads = 8, .seq = 128, .vocab = 256}, 8},
    {{.layers = 1, .hidden = 1024, .heads = 16, .seq = 512, .vocab = 8192}, 8},
    {{.layers = 1, .hidden = 2048, .heads = 32, .seq = 1024, .vocab = 8192}, 16},
};
#define SIZES (sizeof sizes / sizeof *sizes)
#define BUSY_S 0.01 /* a step this long takes much longer than launching it */

#define COPIED ((uint64_t)64 << 20)
#define ROUNDS 4

static double step_seconds(const struct sums *sums)
{
    double seconds = sums->other_seconds;
    for (size_t i = 0; i < sums->count; i++)
        seconds += sums->rates[i].seconds[FORWARD] + sums->rates[i].seconds[BACKWARD];
    return seconds;
}

static int time_size(const struct device *device, size_t size, enum element element,
                     struct sums *sums, struct error *err)
{
    *sums = (struct sums){0};
    return probe_steps(device, &sizes[size].model, element, sizes[size].samples, sums, err);
}

/* Time models of growing size until one keeps the device busy; the rates are fitted to the last
 * two. */
static int time_kernels(const struct device *device, enum element element, struct profile *out,
                        struct error *err)
{
    struct sums pair[2];
    int rc = time_size(device, 0, element, &pair[0], err);
    size_t i = 1;
    for (; i < SIZES && rc == 0; i++) {
        rc = time_size(device, i, element, &pair[i % 2], err);
        if (rc == 0 && step_seconds(&pair[i % 2]) >= BUSY_S) {
            i++;
            break;
        }
    }
    if (rc == 0)
        probe_fill_rates(out, element, (struct sums[]){pair[(i - 1) % 2], pair[i % 2]}, 2);
    return rc;
}

enum way { UP, DOWN, INSIDE, WAYS };

struct buffers {
    const struct accelerator *accelerator;
    void *device, *other, *host;
};

static void copy(const struct buffers *buffers, enum way way, uint64_t bytes)
{
    if (way == UP)
        buffers->accelerator->upload(buffers->device, buffers->host, bytes);
    else if (way == DOWN)
        buffers->accelerator->download(buffers->host, buffers->device, bytes);
    else
        buffers->accelerator->move(buffers->other, buffers->device, bytes);
}

/* Bytes per second, the best of some rounds. */
static int time_copies(const struct buffers *buffers, uint64_t bytes, double rates[WAYS],
                       struct error *err)
{
    int rc = 0;
    for (int way = UP; way < WAYS; way++) {
        double best = INFINITY;
        for (int round = 0; round <= ROUNDS && rc == 0; round++) {
            double begin = probe_now();
            copy(buffers, (enum way)way, bytes);
            rc = buffers->accelerator->finish(err);
            best = fmin(best, probe_now() - begin);
        }
        rates[way] = (double)bytes / best;
    }
    return rc;
}

/* Measure free memory, and copies of COPIED bytes or at most a quarter of what is free. */
static int time_memory(const struct device *device, double rates[WAYS],
                       struct probe_figures *figures, struct error *err)
{
    struct buffers buffers = {.accelerator = device->accelerator};
    struct lane *lanes[2] = {NULL, NULL}; /* a rank opens these too, and they take memory */
    int rc = device->accelerator->lane_open(&lanes[0], true, err);
    if (rc == 0)
        rc = device->accelerator->lane_open(&lanes[1], false, err);
    uint64_t room = 0;
    if (rc == 0)
        rc = device->accelerator->room(&room, err);
    if (rc == 0)
        rc = device->accelerator->libraries(&figures->library_bytes, err);
    figures->memory_bytes = room + figures->library_bytes;
    uint64_t bytes = room / 4 < COPIED ? room / 4 : COPIED;
    if (rc == 0)
        rc = device->accelerator->reserve(bytes, &buffers.device, err);
    if (rc == 0)
        rc = device->accelerator->reserve(bytes, &buffers.other, err);
    if (rc == 0)
        rc = device->accelerator->pin(bytes, &buffers.host, err);
    if (rc == 0) {
        device->accelerator->enter(lanes[0]);
        rc = time_copies(&buffers, bytes, rates, err);
        device->accelerator->enter(NULL);
    }
    device->accelerator->lane_close(lanes[0]);
    device->accelerator->lane_close(lanes[1]);
    device->accelerator->unpin(buffers.host);
    device->accelerator->release(buffers.other);
    device->accelerator->release(buffers.device);
    return rc;
}

int probe_device(const struct device *device, double crowd, struct profile_link host,
                 struct profile *out, struct probe_figures *figures, struct error *err)
{
    double rates[WAYS] = {0};
    struct error why;
    *out = (struct profile){.overlap = PROFILE_OVERLAP};
    int rc = time_kernels(device, ELEMENT_F32, out, err);
    if (rc == 0 && time_kernels(device, ELEMENT_BF16, out, &why) < 0)
        probe_warn_of_bf16(&why);
    if (rc == 0)
        rc = time_memory(device, rates, figures, err);
    if (rc < 0)
        return rc;
    figures->flops = out->seconds_per_flop > 0 ? 1 / out->seconds_per_flop : 0;
    profile_slow_down(out, crowd);
    figures->upload = rates[UP];
    figures->download = rates[DOWN];
    figures->bandwidth = 2 * rates[INSIDE]; /* it is read and written */
    out->host = host;
    out->host.seconds_per_byte += crowd / rates[UP] + crowd / rates[DOWN];
    out->network = out->host;
    return 0;
}
