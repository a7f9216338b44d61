/* internal.h - shared by the probes of kernels and of links. */
#ifndef WORKER_PROBE_INTERNAL_H
#define WORKER_PROBE_INTERNAL_H

#include "common/models/model.h"
#include "worker/collectives/meeting.h"
#include "worker/probe/probe.h"

#include <pthread.h>

struct probe {
    const cpu_set_t *sets;
    const struct device *device;
    const struct collectives *collectives;
    struct profile *profiles;
    double crowd;
    int devices, ranks; /* ranks: that probe links, at least 2 */
    struct local_hub *hub;
    pthread_barrier_t barrier;
    struct meeting *meeting; /* of those ranks */
    pthread_mutex_t lock;    /* for the fields below */
    int rc;
    struct error *err;
    double share; /* least share of its processor that a prober had */
};

struct prober {
    struct probe *probe;
    int index;
    double passed_s, had_s; /* time spent on kernels; how much of it the thread had its processor */
    pthread_t thread;
};

double probe_now(void);

/* Result of measuring steps: seconds, work and runs by operation and direction, and of everything
 * else. */
struct sums {
    struct {
        const char *operation;
        double seconds[DIRECTIONS], flops[DIRECTIONS], bytes[DIRECTIONS];
        int instructions[DIRECTIONS];
    } rates[PROFILE_RATES_MAX];
    size_t count;
    double other_seconds, other_bytes;
    int other_instructions;
    double passed_s, had_s; /* as in struct prober */
};
/* Measure steps of one-layer models of this size that compute with `element`, each after a warm-up
 * step: one model of each family that has operations of its own. Operations that are not measured
 * this way are matrix products, which have the rate of others. */
int probe_steps(const struct device *device, const struct model_config *size, enum element element,
                int64_t samples, struct sums *sums, struct error *err);
/* From what models of a few sizes took that computed with this element, the one with the most work
 * first; `crowd` times as slow. In f32 also of what has no rate of its own. */
void probe_fill_rates(struct profile *profile, enum element element, const struct sums *sums,
                      size_t sizes, double crowd);
/* A device that computes in f32 is used, whatever is the matter with bf16. */
void probe_warn_of_bf16(const struct error *why);
/* Collective over the ranks: latency and speed of the links among them, and how much computing and
 * moving data slow each other down. */
int probe_links(struct prober *prober, struct profile_link *link, double *overlap,
                struct error *err);
int probe_overlap(struct prober *prober, struct fabric_group *group, double *out,
                  struct error *err);
/* From the best times of an all-reduce of next to nothing and one of `bytes`, as profile_seconds()
 * prices them. */
void probe_fill_link(struct profile_link *link, int ranks, double bytes, double little,
                     double much);

#endif
