/* steps.h - trains small models for a few steps, and turns the times of their instructions into the
 * rates of a profile. */
#ifndef WORKER_PROBE_STEPS_H
#define WORKER_PROBE_STEPS_H

#include "common/models/model.h"
#include "common/profile/profile.h"
#include "worker/kernels/kernels.h"

/* Result of measuring steps: seconds, work and number of instructions, by operation and direction
 * for kernels, and summed for everything else. */
struct probe_sums {
    struct {
        const char *operation;
        double seconds[DIRECTIONS], flops[DIRECTIONS], bytes[DIRECTIONS];
        int instructions[DIRECTIONS];
    } rates[PROFILE_RATES_MAX];
    size_t count;
    double other_seconds, other_bytes;
    int other_instructions;
    double passed_s, had_s; /* the thread's time; how much of it it had its processor */
};
/* Measure training steps, after a warm-up step, of one-layer models of this size that compute with
 * `element`: one model of each family that has operations of its own. The operations that this
 * leaves out are matrix products, which are planned at the rate of others. Adds to *sums. */
int probe_steps(const struct device *device, const struct job_model *size, enum element element,
                int64_t samples, struct probe_sums *sums, struct error *err);
/* Fit the rates of a profile for this element to the sums of models of a few sizes, that with the
 * most work first. With f32 also the costs of all that is not a kernel. */
void probe_fill_rates(struct profile *profile, enum element element, const struct probe_sums *sums,
                      size_t sizes);
/* Log that bf16 could not be measured: a device that computes in f32 is used nevertheless. */
void probe_warn_of_bf16(const struct error *why);

#endif
