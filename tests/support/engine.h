/* engine.h - trains a small model under a plan, ranks as threads of this process, and brings
 * the whole tensors together. */
#ifndef TESTS_SUPPORT_ENGINE_H
#define TESTS_SUPPORT_ENGINE_H

#include "common/program/lower.h"
#include "worker/interpreter/interpreter.h"

#define ENGINE_STEPS_MAX 128

struct engine_options {
    const struct device *device;           /* NULL: plain */
    const struct collectives *collectives; /* NULL: local */
    bool staged; /* they know the host's memory only: the device's data goes through it */
    int steps;
    double ignored; /* share of the targets that do not count */
    bool poison;
    bool same_samples; /* the evaluation reads the samples of step 0 */
    /* Per tensor, whole: added to the initial parameters. (optional) */
    const float *const *offsets;
    /* Called by every rank before each step and, with step == steps, after the last. (optional) */
    void (*before_step)(void *context, int rank, int step);
    /* Called by every rank once its parameters are initialized: it may put others in their place,
     * of a training that has finished first_step steps; then behind each step, with how many are
     * finished; then at its end, with in NULL. Negative ends the run. (optional) */
    int first_step;
    int (*hook)(void *context, int rank, struct interpreter *in, int done, struct error *err);
    void *context;
};

struct engine_result {
    double loss[ENGINE_STEPS_MAX], norm[ENGINE_STEPS_MAX];
    double evaluation;  /* loss of an evaluation after the last step */
    float **gradients;  /* per tensor, whole; of step 0; NULL for what is no weight */
    float **parameters; /* after the last step */
    uint64_t *touched[REGIONS], *reserved[REGIONS]; /* per rank: bytes; high-water marks */
    uint64_t *sent, *words; /* per rank: elements sent in the training steps; what programs say */
    uint64_t *hashes;       /* per rank */
    size_t tensor_count;
    int ranks;
};

/* Replicas that do not agree bit by bit are an error, -EILSEQ. */
int engine_run(const struct graph *graph, const struct plan *plan,
               const struct engine_options *options, struct engine_result *out, struct error *err);
void engine_result_finish(struct engine_result *result);

/* A plan with the same mesh and roles everywhere on each stage: the layers divided evenly. */
struct plan *engine_plan(const struct graph *graph, int stages, const int *axes, int axis_count,
                         const char *const *roles, int micro_batches, int64_t samples,
                         const char *schedule);
/* The same on one device. */
struct plan *engine_plan_one(const struct graph *graph, int micro_batches, int64_t samples);
/* A plan drawn from a seed: stages, meshes, roles per block, uneven weights, zero. */
struct plan *engine_plan_random(const struct graph *graph, uint64_t seed, int ranks_max,
                                int64_t batch);

/* What two runs of so many steps do not have in common bit by bit: "loss", a tensor's name; NULL:
 * nothing, losses, norms, gradients and parameters are the same. */
const char *engine_differs(const struct engine_result *a, const struct engine_result *b,
                           const struct graph *graph, int steps);
/* Largest difference of two runs: losses, relative; and gradients by the rule
 * ||d|| <= limit max(||g||, 1e-3 norm / sqrt(tensors)), as a multiple of the limit. */
double engine_loss_difference(const struct engine_result *a, const struct engine_result *b,
                              int steps);
double engine_gradient_difference(const struct engine_result *a, const struct engine_result *b,
                                  const struct graph *graph, const char **worst);

#endif
