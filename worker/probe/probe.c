/* probe.c - the measurement of devices made of cores: training steps of small models of a few
 * sizes, in f32 and in bf16, to which the cost of each operation is fitted; then the links between
 * them, and computing and exchanging at once. */
#include "worker/probe/internal.h"

#include "common/base/log.h"
#include "common/base/memory.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double probe_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void fail(struct probe *probe, int rc, const struct error *err)
{
    pthread_mutex_lock(&probe->lock);
    if (probe->rc == 0)
        probe->rc = error_set(probe->err, rc, "%s", err->text);
    pthread_mutex_unlock(&probe->lock);
}

void probe_warn_of_bf16(const struct error *why)
{
    log_line(LOG_WARN, "bf16 is planned as if it were f32, as it cannot be measured: %s",
             why->text);
}

/* Sizes that enclose most micro-batches of small models, that with the most work first: 512 tokens;
 * 64 tokens; a long sequence, in which attention dominates; and a wide model. */
static const struct {
    struct model_config model;
    int64_t samples;
} sizes[] = {
    {{.layers = 1, .hidden = 256, .heads = 8, .seq = 128, .vocab = 256}, 4},
    {{.layers = 1, .hidden = 64, .heads = 4, .seq = 64, .vocab = 256}, 1},
    {{.layers = 1, .hidden = 128, .heads = 4, .seq = 512, .vocab = 256}, 1},
    {{.layers = 1, .hidden = 384, .heads = 6, .seq = 128, .vocab = 256}, 1},
};
#define SIZES (sizeof sizes / sizeof *sizes)

static int time_kernels(struct prober *prober, enum element element, struct error *err)
{
    struct sums sums[SIZES] = {0};
    int rc = 0;
    for (size_t i = 0; i < SIZES && rc == 0; i++) {
        rc = probe_steps(prober->probe->device, &sizes[i].model, element, sizes[i].samples,
                         &sums[i], err);
        prober->passed_s += sums[i].passed_s;
        prober->had_s += sums[i].had_s;
    }
    if (rc == 0)
        probe_fill_rates(&prober->probe->profiles[prober->index], element, sums, SIZES);
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

/* The second rank for the links of a single device: it joins in after the kernels are measured. */
static void *companion_run(void *context)
{
    struct prober *prober = context;
    pthread_barrier_wait(&prober->probe->barrier);
    return prober_run(context);
}

int probe_run(const cpu_set_t *sets, int count, const struct device *device,
              const struct collectives *collectives, struct profile *out, double *share,
              struct error *err)
{
    struct probe probe = {.share = 1,
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
