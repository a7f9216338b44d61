/* internal.h - what the files of the probe share: the state of probe_run(), and the measurements of
 * kernels and of links. */
#ifndef WORKER_PROBE_INTERNAL_H
#define WORKER_PROBE_INTERNAL_H

#include "common/models/model.h"
#include "worker/collectives/meeting.h"
#include "worker/probe/fit.h"
#include "worker/probe/probe.h"

#include <pthread.h>

/* A call of probe_run(); the arguments are lent. */
struct probe {
    const cpu_set_t *sets;
    const struct device *device;
    const struct collectives *collectives;
    struct profile *profiles;
    int devices, ranks; /* ranks: threads, all of which take part in the links; at least 2 */
    struct local_hub *hub;
    pthread_barrier_t barrier;
    struct meeting *meeting; /* of those ranks */
    pthread_mutex_t lock;    /* for the fields below */
    int rc;                  /* the first error, with words in err */
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

/* Seconds, monotonic. */
double probe_now(void);

/* Result of measuring steps: seconds, work and number of instructions, by operation and direction
 * for kernels, and summed for everything else. */
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
/* Measure training steps, after a warm-up step, of one-layer models of this size that compute with
 * `element`: one model of each family that has operations of its own. The operations that this
 * leaves out are matrix products, which are planned at the rate of others. Adds to *sums. */
int probe_steps(const struct device *device, const struct model_config *size, enum element element,
                int64_t samples, struct sums *sums, struct error *err);
/* The index of an operation's rates; sums->count: there are none. */
size_t probe_find_rates(const struct sums *sums, const char *operation);
/* Fit the rates of a profile for this element to the sums of models of a few sizes, that with the
 * most work first. With f32 also the costs of all that is not a kernel. */
void probe_fill_rates(struct profile *profile, enum element element, const struct sums *sums,
                      size_t sizes);
/* Log that bf16 could not be measured: a device that computes in f32 is used nevertheless. */
void probe_warn_of_bf16(const struct error *why);
/* Collective over the ranks: measure latency and speed of the links between them, and the factor by
 * which computing and exchanging data slow each other down (probe_overlap(): 1 to
 * PROFILE_OVERLAP_MAX). */
int probe_links(struct prober *prober, struct profile_link *link, double *overlap,
                struct error *err);
int probe_overlap(struct prober *prober, struct fabric_group *group, double *out,
                  struct error *err);

#endif
