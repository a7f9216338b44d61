/* probe.c - the measurement of devices made of cores: training steps of small models of a few
 * sizes, in f32 and in bf16, to which the cost of each operation is fitted; then the links between
 * them, by all-reduces of two sizes between threads of this process; and computing and exchanging
 * at once. */
#include "worker/probe/probe.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "worker/collectives/rendezvous.h"
#include "worker/probe/fit.h"
#include "worker/probe/links.h"
#include "worker/probe/steps.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A call of probe_run(); the arguments are lent. */
struct probe {
    const cpu_set_t *sets;
    const struct device *device;
    const struct collectives *collectives;
    struct profile *profiles;
    int devices, ranks; /* ranks: threads, all of which take part in the links; at least 2 */
    struct local_hub *hub;
    pthread_barrier_t barrier;
    struct local_rendezvous *meeting; /* of those ranks */
    pthread_mutex_t lock;             /* for the fields below */
    int rc;                           /* the first error, with words in err */
    struct error *err;
    double share; /* the least share of its processor that a prober had */
};

/* A thread of probe_run(). */
struct prober {
    struct probe *probe;
    int index;
    double passed_s, had_s; /* time spent on kernels; how much of it the thread had its processor */
    pthread_t thread;
};

#define SMALL_ELEMENTS 16
#define LARGE_ELEMENTS ((size_t)1 << 20)
#define LINK_ROUNDS 12
/* Threads of one process cannot lose each other; the limit is for the worker, which waits for the
 * result. */
#define TIMEOUT_S 600

#define SUMMED ((size_t)1 << 16) /* elements to compute with: they stay in the cache */
#define MOVED ((size_t)1 << 18)
#define MOVES 4
#define OVERLAP_ROUNDS 5
#define PATIENCE_S 0.5 /* after this no further round begins: others may need the cores */

static void probe_fail(struct probe *probe, int rc, const struct error *err)
{
    pthread_mutex_lock(&probe->lock);
    if (probe->rc == 0)
        probe->rc = error_set(probe->err, rc, "%s", err->text);
    pthread_mutex_unlock(&probe->lock);
}

/* Sizes that enclose most micro-batches of small models, that with the most work first: 512 tokens;
 * 64 tokens; a long sequence, in which attention dominates; and a wide model. */
static const struct {
    struct job_model model;
    int64_t samples;
} sizes[] = {
    {{.layers = 1, .hidden = 256, .heads = 8, .seq = 128, .vocab = 256}, 4},
    {{.layers = 1, .hidden = 64, .heads = 4, .seq = 64, .vocab = 256}, 1},
    {{.layers = 1, .hidden = 128, .heads = 4, .seq = 512, .vocab = 256}, 1},
    {{.layers = 1, .hidden = 384, .heads = 6, .seq = 128, .vocab = 256}, 1},
};
#define SIZES (sizeof sizes / sizeof *sizes)

static int prober_kernels(struct prober *prober, enum element element, struct error *err)
{
    struct probe_sums sums[SIZES] = {0};
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

static int prober_elements(struct prober *prober, struct error *err)
{
    struct error why;
    pthread_barrier_wait(&prober->probe->barrier); /* all devices work at the same time */
    int rc = prober_kernels(prober, ELEMENT_F32, err);
    if (rc == 0 && prober_kernels(prober, ELEMENT_BF16, &why) < 0)
        probe_warn_of_bf16(&why);
    return rc;
}

static void prober_share(struct prober *prober)
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

struct mover {
    const struct collectives *collectives;
    struct fabric_group *group;
    float *data;
    double until_s;
    int rc;
    struct error err;
};

static void *mover_run(void *context)
{
    struct mover *mover = context;
    for (int i = 0; i < MOVES && mover->rc == 0; i++)
        mover->rc = mover->collectives->all_reduce(mover->group, ELEMENT_F32, mover->data, MOVED,
                                                   REDUCTION_SUM, &mover->err);
    return NULL;
}

/* Wait for all ranks. False: an error, or time is up for one of them, which ends it for all. */
static bool mover_meets(struct mover *mover)
{
    float late[1] = {clock_s() > mover->until_s ? 1 : 0};
    if (mover->rc == 0)
        mover->rc = mover->collectives->all_reduce(mover->group, ELEMENT_F32, late, 1,
                                                   REDUCTION_SUM, &mover->err);
    return mover->rc == 0 && !(late[0] > 0);
}

static double time_moves(struct mover *mover)
{
    double begin = clock_s();
    mover_run(mover);
    return clock_s() - begin;
}

static double time_sums(const struct device *device, const float *data, int count)
{
    double begin = clock_s();
    float sum = 0;
    for (int i = 0; i < count; i++)
        device->square_sum(data, SUMMED, &sum);
    return clock_s() - begin;
}

static double time_both(struct mover *mover, const struct device *device, const float *data,
                        int count)
{
    pthread_t thread;
    double begin = clock_s();
    bool beside = pthread_create(&thread, NULL, mover_run, mover) == 0;
    if (!beside)
        mover_run(mover);
    time_sums(device, data, count);
    if (beside)
        pthread_join(thread, NULL);
    return clock_s() - begin;
}

/* Collective over the ranks: the factor by which computing and exchanging data slow each other
 * down, 1 to PROFILE_OVERLAP_MAX. Each is timed alone, then both at once. Together they take as
 * long as the longer one if they do not disturb each other, and as long as both in turn if they
 * share everything. All ranks measure at the same time. */
static int measure_overlap(struct prober *prober, struct fabric_group *group, double *out,
                           struct error *err)
{
    const struct device *device = prober->probe->device;
    struct mover mover = {.collectives = prober->probe->collectives, .group = group};
    mover.until_s = clock_s() + PATIENCE_S;
    float *data = xcalloc(SUMMED, sizeof *data);
    double moving = INFINITY, computing = INFINITY, both = INFINITY;
    mover.data = xcalloc(MOVED, sizeof *mover.data);
    for (int i = 0; i < OVERLAP_ROUNDS && (mover_meets(&mover) || i == 0); i++)
        moving = fmin(moving, time_moves(&mover));
    /* Compute for about as long as the exchanges take. */
    int count = 1 + (int)fmin(1e6, moving / fmax(1e-7, time_sums(device, data, 10) / 10));
    mover.until_s = clock_s() + PATIENCE_S;
    for (int i = 0; i < OVERLAP_ROUNDS && (mover_meets(&mover) || i == 0); i++) {
        computing = fmin(computing, time_sums(device, data, count));
        both = fmin(both, time_both(&mover, device, data, count));
    }
    double shorter = fmin(moving, computing), longer = fmax(moving, computing);
    *out = fmax(1, fmin(PROFILE_OVERLAP_MAX, (both - (longer - shorter)) / shorter));
    free(mover.data);
    free(data);
    return mover.rc < 0 ? error_set(err, mover.rc, "%s", mover.err.text) : 0;
}

/* Collective over the ranks: measure latency and speed of the links between them, and overlap. */
static int measure_links(struct prober *prober, struct hardware_link *link, double *overlap,
                         struct error *err)
{
    struct probe *probe = prober->probe;
    struct rendezvous rendezvous = local_rendezvous_lend(probe->meeting);
    struct fabric_config config = {.rank = prober->index,
                                   .count = probe->ranks,
                                   .timeout_s = TIMEOUT_S,
                                   .rendezvous = &rendezvous,
                                   .shared = probe->hub};
    struct links_exchange exchange = {.library = probe->collectives};
    int *ranks = xcalloc((size_t)probe->ranks, sizeof *ranks);
    double little = INFINITY, much = INFINITY;
    for (int i = 0; i < probe->ranks; i++)
        ranks[i] = i;
    int rc = probe->collectives->open(&config, &exchange.fabric, err);
    if (rc == 0)
        rc = probe->collectives->group(exchange.fabric, ranks, probe->ranks, &exchange.group, err);
    exchange.data = xcalloc(LARGE_ELEMENTS, sizeof(float));
    if (rc == 0)
        rc = links_time(&exchange, SMALL_ELEMENTS, LINK_ROUNDS, &little, err);
    if (rc == 0)
        rc = links_time(&exchange, LARGE_ELEMENTS, LINK_ROUNDS, &much, err);
    free(exchange.data);
    if (rc == 0) {
        *link = fit_link(probe->ranks, (double)(LARGE_ELEMENTS * sizeof(float)), little, much);
        rc = measure_overlap(prober, exchange.group, overlap, err);
    }
    if (rc < 0 && exchange.fabric)
        probe->collectives->abort(exchange.fabric);
    probe->collectives->close(exchange.fabric);
    free(ranks);
    return rc;
}

static void *prober_run(void *context)
{
    struct prober *prober = context;
    struct probe *probe = prober->probe;
    struct hardware_link link = {0};
    double overlap = PROFILE_OVERLAP;
    struct error err = {""};
    int threads, set = prober->index % probe->devices;
    int rc = cpuset_bind(&probe->sets[set], &threads, &err);
    if (probe->device->threads)
        probe->device->threads(threads);
    if (prober->index < probe->devices) {
        int rc2 = prober_elements(prober, &err);
        rc = rc < 0 ? rc : rc2;
        prober_share(prober);
    }
    pthread_barrier_wait(&probe->barrier);
    if (rc < 0)
        probe_fail(probe, rc, &err);
    pthread_barrier_wait(&probe->barrier);
    if (all_is_well(probe)) {
        rc = measure_links(prober, &link, &overlap, &err);
        if (rc < 0)
            probe_fail(probe, rc, &err);
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
    probe.meeting = local_rendezvous_create(RENDEZVOUS_STAYING);
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
    local_rendezvous_destroy(probe.meeting);
    free(probers);
    pthread_barrier_destroy(&probe.barrier);
    local_hub_destroy(probe.hub);
    *share = probe.share;
    return probe.rc;
}
