/* cost.c - Galvatron's formula, in its own units: milliseconds and MB.
 *
 * A layer on t x d devices, with b samples of the micro-batch on each. Forward: f b / t, with f
 * from the profile; backward: twice that, and the forward again with recomputation. Four
 * collectives of b s h (six with recomputation) over t. Gradients, P/t MB, are reduced over d
 * during the backward pass: while both run, each takes `overlap` times as long; if d is 2 or less
 * beside t, only half of the backward pass overlaps. ZeRO-3 gathers weights without overlap. A
 * collective of M MB on n devices moves 2 (n - 1) / n M, a gather half of that. Between stages, 2 b
 * s h of every stage are distributed over the layers. 16 bits halve every message.
 *
 * Memory: four times P/t, of which ZeRO-3 keeps 1/d + 0.003 and ZeRO-2 that fraction of 7/8 (in f32
 * of 3/4); activations of every micro-batch in flight; embedding and head; and 1024 MB of context.
 *
 * The pipeline: T_i is a stage's time without reduction, S_i with it. A = sum T + T_last (m - 1); B
 * = max(w T_0 / 3, R / 3) + max(2 w T_0 / 3, 2 R / 3) + T_0 max(0, m + 1 - p), with w = min(p, m) -
 * 1 and R the sum of T except T_0. A step is max(A, B) + max(0, max(S_i - sum of T up to i)). */
#include "coordinator/planner/galvatron/cost.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/simulate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MB 1048576.0
#define CONTEXT_MB 1024
#define FREE_MB (20 * 1024.0) /* up to this much all is used */
#define RESERVE 0.2
#define ZERO_BIAS 0.003

double galvatron_memory(const struct galvatron_problem *problem)
{
    double bytes = (double)problem->memory_bytes;
    return bytes > FREE_MB * MB ? bytes * (1 - RESERVE) : bytes;
}

static int lacks(const char *what, int degree, struct error *err)
{
    return error_set(err, -EINVAL, "the profile has no %s of %d", what, degree);
}

/* Milliseconds per MB over a group; if this arrangement (neighbours or not) was not measured, those
 * of the other. */
static int find_inverse(const struct galvatron_problem *problem, int size, bool neighbours,
                        double *out, struct error *err)
{
    int level = galvatron_level(size);
    *out = 0;
    if (size == 1)
        return 0;
    const double(*rates)[GALVATRON_LEVELS] = problem->profile->allreduce_gb_s;
    double rate = level < 0 ? 0 : rates[neighbours][level];
    if (level >= 0 && rate == 0)
        rate = rates[!neighbours][level];
    if (rate == 0)
        return lacks("allreduce_size", size, err);
    *out = 1 / rate;
    return 0;
}

static double galvatron_halve(const struct galvatron_problem *problem, double mb)
{
    return problem->profile->mixed ? mb / 2 : mb;
}

/* Activations between two layers for this many samples. */
static double passed_mb(const struct galvatron_problem *problem, double samples)
{
    return galvatron_halve(problem,
                           samples * (double)problem->seq * (double)problem->hidden * 4 / MB);
}

/* Backward and reduction overlapping each other. */
static double galvatron_overlap(double backward, double message, double inverse, double slower)
{
    double reduction = message * inverse * slower, computation = backward * slower;
    if (reduction > computation)
        return computation + (message - computation / (inverse * slower)) * inverse;
    return reduction + backward - reduction / slower;
}

/* The share of a layer's states that remains with this zero. */
static double galvatron_share(const struct galvatron_problem *problem, int zero, int degree)
{
    double kept = 1.0 / degree + ZERO_BIAS, part = problem->profile->mixed ? 7.0 / 8 : 3.0 / 4;
    return zero == 3 ? kept : zero == 2 ? part * kept + 1 - part : 1;
}

static int layer_seconds(const struct galvatron_problem *problem,
                         const struct galvatron_strategy *strategy, int stages, double samples,
                         struct galvatron_cost *out, struct error *err)
{
    const struct galvatron_profile *profile = problem->profile;
    int t = strategy->tensor, d = strategy->batch;
    double tensor_inverse, batch_inverse, between = 0;
    int rc = find_inverse(problem, t, d == 1 || strategy->neighbours, &tensor_inverse, err);
    if (rc == 0)
        rc = find_inverse(problem, d, t == 1 || !strategy->neighbours, &batch_inverse, err);
    if (rc < 0)
        return rc;
    if (stages > 1) {
        int level = galvatron_level(stages);
        if (level < 0 || profile->p2p_gb_s[level] == 0)
            return lacks("pp_size", stages, err);
        between =
            2 * stages * passed_mb(problem, samples) / profile->p2p_gb_s[level] / problem->layers;
    }
    double forward = galvatron_ms(&profile->layer, samples) * samples / t;
    double backward = (strategy->recompute ? 3 : 2) * forward;
    double collectives = (strategy->recompute ? 6 : 4) * 2.0 * (t - 1) / t *
                         passed_mb(problem, samples) * tensor_inverse;
    double message = galvatron_halve(problem, 2.0 * (d - 1) / d * profile->parameter_mb / t);
    double gather = strategy->zero == 3 ? message / 2 * batch_inverse : 0;
    double alone = t > 1 && d > 1 && d <= 2 ? backward / 2 : 0;
    double fixed = forward + collectives + gather + between;
    out->seconds = (fixed + backward) / 1000;
    out->reduce_s = out->seconds;
    if (d > 1)
        out->reduce_s =
            (fixed + alone +
             galvatron_overlap(backward - alone, message, batch_inverse, profile->overlap)) /
            1000;
    out->repeated_s = out->seconds;
    out->once_s = out->reduce_s - out->seconds;
    return 0;
}

int galvatron_layer(const struct galvatron_problem *problem,
                    const struct galvatron_strategy *strategy, int stages, int64_t samples,
                    int slots, struct galvatron_cost *out, struct error *err)
{
    const struct galvatron_profile *profile = problem->profile;
    int t = strategy->tensor, level = galvatron_level(t);
    double own = (double)samples / strategy->batch, activation_mb;
    int rc = layer_seconds(problem, strategy, stages, own, out, err);
    if (rc < 0)
        return rc;
    if (strategy->recompute && profile->checkpoint_mb == 0)
        return error_set(err, -EINVAL, "the profile has no activation 'checkpoint'");
    if (!strategy->recompute && (level < 0 || profile->activation_mb[level] == 0))
        return lacks("activation", t, err);
    if (strategy->recompute)
        activation_mb = profile->checkpoint_mb / (profile->sequence ? t : 1);
    else
        activation_mb = profile->activation_mb[level];
    out->bytes = MB * (4 * profile->parameter_mb / t *
                           galvatron_share(problem, strategy->zero, strategy->batch) +
                       activation_mb * own * slots);
    return 0;
}

int galvatron_ends(const struct galvatron_problem *problem, int devices, int tensor, int zero,
                   int stage, int stages, int64_t samples, int slots, struct galvatron_cost *out,
                   struct error *err)
{
    const struct galvatron_profile *profile = problem->profile;
    const struct galvatron_other *other = stages == 1  ? &profile->alone
                                          : stage == 0 ? &profile->first
                                                       : &profile->last;
    *out = (struct galvatron_cost){.bytes = CONTEXT_MB * MB};
    if (stage > 0 && stage < stages - 1)
        return 0;
    int level = galvatron_level(tensor), batch = devices / tensor;
    double tensor_inverse, batch_inverse, own = (double)samples / batch;
    if (level < 0 || other->states_mb[level] == 0 || other->activation_mb[level] == 0)
        return lacks("model_states and activation of embedding and head", tensor, err);
    int rc = find_inverse(problem, tensor, batch == 1, &tensor_inverse, err);
    if (rc == 0)
        rc = find_inverse(problem, batch, tensor == 1, &batch_inverse, err);
    if (rc < 0)
        return rc;
    double part = stages == 1 ? 1 : 0.5;
    double compute = 3 * part * galvatron_ms(&profile->other, own) * own;
    double reduce = other->states_mb[level] / 4 * (batch - 1) / batch * batch_inverse;
    double collectives = 2 * part * (tensor - 1) / tensor *
                         passed_mb(problem, (double)samples / devices) * tensor_inverse;
    out->seconds = (compute + reduce + collectives) / 1000;
    out->repeated_s = (compute + collectives) / 1000;
    out->once_s = reduce / 1000;
    out->bytes += MB * (other->states_mb[level] * galvatron_share(problem, zero, batch) +
                        other->activation_mb[level] * own * slots);
    return 0;
}

double galvatron_step(const struct galvatron_cost *stages, int count, int micro_batches)
{
    double sum = 0, late = 0, first = stages[0].seconds;
    int filling = (count < micro_batches ? count : micro_batches) - 1;
    for (int i = 0; i < count; i++) {
        sum += stages[i].seconds;
        late = fmax(late, stages[i].reduce_s - sum);
    }
    double rest = sum - first;
    double a = sum + stages[count - 1].seconds * (micro_batches - 1);
    double b = fmax(filling * first / 3, rest / 3) + fmax(2 * filling * first / 3, 2 * rest / 3) +
               first * (micro_batches + 1 > count ? micro_batches + 1 - count : 0);
    return fmax(a, b) + late;
}

double galvatron_simulate(const struct galvatron_cost *stages, const struct plan *plan)
{
    size_t count = (size_t)plan->stage_count;
    struct stage_cost *parts = xcalloc(count, sizeof *parts);
    for (size_t i = 0; i < count; i++) {
        parts[i].forward_s = stages[i].repeated_s / 3;
        parts[i].backward_s = 2 * stages[i].repeated_s / 3;
        parts[i].once_s = stages[i].once_s;
    }
    double step_s =
        stages_seconds(parts, plan->stage_count, plan->micro_batches, plan->schedule, NULL);
    free(parts);
    return step_s;
}

static int read_strategy(const struct plan *plan, int block, struct galvatron_strategy *out,
                         struct error *err)
{
    const struct plan_block *of = &plan->blocks[block];
    const struct mesh *mesh = &plan->stages[of->stage].mesh;
    *out = (struct galvatron_strategy){1, 1, false, of->zero, of->recompute == RECOMPUTE_FULL};
    for (int axis = 0; axis < mesh->axes; axis++) {
        const char *role = of->roles[axis]->name;
        bool tensor = strncmp(role, "tensor", strlen("tensor")) == 0;
        if (!tensor && strcmp(role, "batch") != 0)
            return error_set(err, -ENOTSUP, "Galvatron's formula does not know the role %s", role);
        if (tensor && out->batch == 1)
            out->neighbours = true; /* axes are ordered fastest first */
        *(tensor ? &out->tensor : &out->batch) *= mesh->size[axis];
    }
    if (out->zero == 1)
        return error_set(err, -ENOTSUP, "Galvatron's formula does not know zero 1");
    if (of->recompute == RECOMPUTE_SELECTIVE)
        return error_set(err, -ENOTSUP,
                         "Galvatron's formula does not know recomputation of parts of a block");
    return 0;
}

static int judge_stage(const struct galvatron_problem *problem, const struct plan *plan, int stage,
                       struct galvatron_cost *out, struct error *err)
{
    const struct plan_stage *of = &plan->stages[stage];
    int slots = plan->schedule->in_flight(stage, plan->stage_count, plan->micro_batches);
    int end = stage == 0 ? 0 : plan->block_count - 1;
    struct galvatron_strategy strategy;
    int rc = read_strategy(plan, end, &strategy, err);
    if (rc == 0)
        rc = galvatron_ends(problem, mesh_count(&of->mesh), strategy.tensor, strategy.zero, stage,
                            plan->stage_count, plan->micro_batch_samples, slots, out, err);
    for (int b = of->block_first; b < of->block_first + of->block_count && rc == 0; b++) {
        struct galvatron_cost cost;
        if (b == 0 || b == plan->block_count - 1)
            continue;
        rc = read_strategy(plan, b, &strategy, err);
        if (rc == 0)
            rc = galvatron_layer(problem, &strategy, plan->stage_count, plan->micro_batch_samples,
                                 slots, &cost, err);
        if (rc < 0)
            break;
        out->seconds += cost.seconds;
        out->reduce_s += cost.reduce_s;
        out->bytes += cost.bytes;
        out->repeated_s += cost.repeated_s;
        out->once_s += cost.once_s;
    }
    return rc < 0 ? error_prefix(err, rc, "stage %d", stage) : 0;
}

int galvatron_judge(const struct galvatron_problem *problem, const struct plan *plan,
                    struct galvatron_cost *costs, double *step_s, bool *fits, struct error *err)
{
    struct galvatron_cost *stages = xcalloc((size_t)plan->stage_count, sizeof *stages);
    int rc = 0;
    *fits = true;
    for (int i = 0; i < plan->stage_count && rc == 0; i++) {
        rc = judge_stage(problem, plan, i, &stages[i], err);
        *fits = *fits && stages[i].bytes <= galvatron_memory(problem);
    }
    *step_s = rc == 0 ? galvatron_step(stages, plan->stage_count, plan->micro_batches) : INFINITY;
    if (costs)
        memcpy(costs, stages, (size_t)plan->stage_count * sizeof *stages);
    free(stages);
    return rc;
}
