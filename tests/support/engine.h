/* engine.h - trains a small model under a plan, with a thread of this process for each rank, or
 * with a process, and assembles the whole tensors from the ranks' pieces. */
#ifndef TESTS_SUPPORT_ENGINE_H
#define TESTS_SUPPORT_ENGINE_H

#include "common/program/lower.h"
#include "worker/interpreter/interpreter.h"

#define ENGINE_STEPS_MAX 128

struct engine_options {
    const struct device *device;           /* NULL: plain */
    const struct collectives *collectives; /* NULL: local */
    /* Every rank is a process of its own, which calls this first, for its device and its library.
     * What the processes are to share has to be shared memory. (optional) */
    int (*open)(int rank, const struct device **device, const struct collectives **collectives,
                struct error *err);
    bool staged; /* the collectives use host memory, through which the device's data is copied */
    int steps;
    double ignored;    /* fraction of the targets that are ignored */
    bool poison;       /* of struct interpreter_config */
    bool same_samples; /* the evaluation reads the samples of step 0 */
    /* Per tensor, whole: added to the initial parameters. (optional) */
    const float *const *offsets;
    /* Called by every rank before each step and, with step == steps, after the last. (optional) */
    void (*before_step)(void *context, int rank, int step);
    /* Called by every rank once its parameters are initialized, with done == first_step: it may
     * replace them by those of a training that has finished first_step steps. Then after each step,
     * with the number of finished steps; then at the end of the rank, with in == NULL. A negative
     * result ends the run. (optional) */
    int first_step;
    int (*hook)(void *context, int rank, struct interpreter *in, int done, struct error *err);
    void *context;
};

/* Arrays of tensors are indexed as in the graph, in f32; those per rank by rank. */
struct engine_result {
    double loss[ENGINE_STEPS_MAX], norm[ENGINE_STEPS_MAX];
    double evaluation;  /* loss of an evaluation after the last step */
    float **gradients;  /* per tensor, whole; of step 0; NULL for what is no weight */
    float **parameters; /* after the last step */
    uint64_t *touched[REGIONS], *reserved[REGIONS]; /* per rank: bytes; high-water marks */
    uint64_t *sent, *words; /* per rank: elements sent in training; what count_words() predicts */
    uint64_t *hashes;       /* per rank: program_hash() */
    size_t tensor_count;
    int ranks;
    void *memory; /* of all these arrays */
    size_t memory_size;
};

/* Train under the plan, then evaluate. -EILSEQ: replicas of a tensor, which err names, have
 * different bits. out is to be finished whatever the result. */
int engine_run(const struct graph *graph, const struct plan *plan,
               const struct engine_options *options, struct engine_result *out, struct error *err);
void engine_result_finish(struct engine_result *result);

/* A plan whose stages share the layers evenly, all with the same mesh (axes, axis_count) and with
 * the same roles, one per axis, for every block. */
struct plan *engine_plan(const struct graph *graph, int stages, const int *axes, int axis_count,
                         const char *const *roles, int micro_batches, int64_t samples,
                         const char *schedule);
/* A plan for one device. */
struct plan *engine_plan_one(const struct graph *graph, int micro_batches, int64_t samples);
/* A valid plan drawn from a seed, for at most ranks_max ranks: stages, meshes, uneven weights,
 * roles per block, zero, recomputation, micro-batches, schedule and overlap. `batch` samples per
 * step. */
struct plan *engine_plan_random(const struct graph *graph, uint64_t seed, int ranks_max,
                                int64_t batch);

/* The first thing in which two runs of so many steps differ bit by bit: "loss", "norm",
 * "evaluation" or the name of a tensor. NULL: all of these, gradients and parameters, are equal. */
const char *engine_differs(const struct engine_result *a, const struct engine_result *b,
                           const struct graph *graph, int steps);
/* The largest difference between two runs. Of losses, the relative difference. Of gradients, the
 * largest ||d|| / max(||g||, 1e-3 norm / sqrt(tensors)) of all tensors, where g is the gradient of
 * b and norm that of its first step; *worst is the name of the tensor that has it. */
double engine_loss_difference(const struct engine_result *a, const struct engine_result *b,
                              int steps);
double engine_gradient_difference(const struct engine_result *a, const struct engine_result *b,
                                  const struct graph *graph, const char **worst);

#endif
