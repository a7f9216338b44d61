/* instance_bounds.c - lower bounds on all plans of a point, from the minima of its blocks, over all
 * divisions into stages. */
#include "coordinator/planner/exact/instance.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/exact/pipeline_bound.h"
#include "coordinator/planner/exact/survey.h"

#include <math.h>
#include <stdlib.h>

double instance_least(const struct instance *instance, int block, size_t member)
{
    double least = INFINITY;
    for (size_t i = 0; i < instance->all_count; i++) {
        const struct choices *choices = instance->all[i];
        if (choices->place == instance->costs->model.place[block])
            least = fmin(least, *(const double *)((const char *)choices + member));
    }
    return least;
}

/* The most that a stage of a wanted plan may take per micro-batch: it takes this m - 1 times, and
 * once together with all others. */
static double find_most(const struct instance *instance)
{
    int again = instance->point.micro_batches - 1;
    double rest_s = instance->upper_s - instance->before[instance->blocks].seconds;
    return again > 0 ? fmax(rest_s, 0) / again : instance->upper_s;
}

/* Least m T + u of the slowest stage, capped at upper_s: beyond it no plan is wanted. */
static double find_stage(const struct instance *instance, bool priced)
{
    struct chains chains;
    int m = instance->point.micro_batches;
    if (priced)
        chains_init_priced(&chains, instance, m, 1, instance->upper_s);
    else
        chains_init(&chains, instance, offsetof(struct choices, least_alone_s), m,
                    instance->upper_s);
    double longest_s = chains_head(&chains, instance->point.stages, instance->blocks)->longest_s;
    chains_finish(&chains);
    return fmin(longest_s, instance->upper_s);
}

/* If no division is fast enough, the slowest stage takes at least the limit. */
static void divide(struct instance *instance, bool filled)
{
    double most_s = find_most(instance);
    bool priced = filled && !instance->relaxed;
    chains_finish(&instance->chains);
    if (priced)
        chains_init_priced(&instance->chains, instance, 1, 0, most_s);
    else
        chains_init(&instance->chains, instance, offsetof(struct choices, least_s), 1, most_s);
    const struct chain *all =
        chains_head(&instance->chains, instance->point.stages, instance->blocks);
    instance->sum_s =
        fmax(instance->before[instance->blocks].seconds, isfinite(all->sum_s) ? all->sum_s : 0);
    instance->longest_s = fmin(all->longest_s, most_s);
    instance->stage_s = instance->point.stages > 1 ? find_stage(instance, priced) : 0;
}

void instance_sum(struct instance *instance, bool filled)
{
    for (int b = 0; b < instance->blocks; b++) {
        const struct least *sum = &instance->before[b];
        instance->before[b + 1] = (struct least){
            sum->seconds + instance_least(instance, b, offsetof(struct choices, least_s)),
            sum->forward_s + instance_least(instance, b, offsetof(struct choices, least_forward_s)),
            sum->alone_s + instance_least(instance, b, offsetof(struct choices, least_alone_s))};
    }
    divide(instance, filled);
}

struct least instance_between(const struct instance *instance, int first, int end)
{
    const struct least *low = &instance->before[first], *high = &instance->before[end];
    return (struct least){high->seconds - low->seconds, high->forward_s - low->forward_s,
                          high->alone_s - low->alone_s};
}

/* Least time after the step's micro-batches on the first stage. */
static double least_once(const struct instance *instance)
{
    const struct choices *first = instance_choices(instance, 0, 0);
    double least_s = INFINITY;
    for (size_t i = 0; i < first->count; i++)
        least_s = fmin(least_s, first->items[i].cost.once_s);
    return fmax(isfinite(least_s) ? least_s : 0, instance->tied.first_s);
}

/* The step as seen from the last stage, including what it does once; the backwards of the stages
 * before it overlap with that. */
static double last_seconds(const struct instance *instance)
{
    int last = instance->blocks - 1;
    return instance->before[last].forward_s + instance_between(instance, last, last + 1).seconds +
           (instance->point.micro_batches - 1) * instance->longest_s + instance->tied.last_s;
}

double instance_choice_bound(const struct instance *instance, const struct choices *choices,
                             double seconds, double once_s)
{
    int m = instance->point.micro_batches, stages = instance->point.stages;
    if (stages == 1)
        return instance_formula_bound(instance) - choices->least_alone_s + m * seconds + once_s;
    double sum = instance->before[instance->blocks].seconds + seconds -
                 instance_least(instance, choices->block, offsetof(struct choices, least_s));
    double longest = fmax(fmax(seconds, instance->longest_s), sum / stages);
    double once = choices == instance_choices(instance, 0, 0) ? once_s : least_once(instance);
    return fmax(sum, instance->sum_s) + (m - 1) * longest + once;
}

double instance_formula_bound(const struct instance *instance)
{
    if (survey_is_hopeless(instance))
        return instance->early_s;
    if (instance->point.stages == 1)
        return instance->bases[0].once_s + instance->before[instance->blocks].alone_s;
    double step_s = instance->sum_s + (instance->point.micro_batches - 1) * instance->longest_s +
                    least_once(instance) + instance->bases[0].once_s;
    step_s = fmax(step_s, last_seconds(instance));
    return fmin(fmax(step_s, instance->stage_s), instance->upper_s);
}

/* Sums of a minimum over the blocks before each, for each stage as if all blocks were there. What
 * cannot be on a stage takes no time there. The caller frees them. */
static double *sum_stages(const struct instance *instance, size_t member)
{
    int blocks = instance->blocks, stages = instance->point.stages;
    double *sums = xcalloc((size_t)stages * ((size_t)blocks + 1), sizeof *sums);
    for (int stage = 0; stage < stages; stage++)
        for (int b = 0; b < blocks; b++) {
            const struct choices *choices = instance_choices(instance, stage, b);
            double least = choices ? *(const double *)((const char *)choices + member) : 0;
            double *at = &sums[stage * (blocks + 1) + b];
            at[1] = at[0] + (isfinite(least) ? least : 0);
        }
    return sums;
}

/* The first micro-batch passes all stages, and every stage does all of its work: a step takes no
 * less than either, over all divisions. */
double instance_bound(const struct instance *instance)
{
    if (survey_is_hopeless(instance))
        return instance->early_simulated_s;
    size_t pass = offsetof(struct choices, least_bound_s),
           step = offsetof(struct choices, least_step_s);
    int m = instance->point.micro_batches, stages = instance->point.stages;
    double sum_s = 0;
    for (int b = 0; b < instance->blocks; b++)
        sum_s += instance_least(instance, b, pass);
    double *pass_s = sum_stages(instance, pass), *step_s = sum_stages(instance, step);
    const struct pipeline pipeline = {stages, instance->blocks, m, pass_s, step_s};
    double bound_s =
        pipeline_bound(&pipeline, sum_s * evaluate_passes(stages, m), instance->upper_s);
    free(pass_s);
    free(step_s);
    return bound_s;
}

/* All stages take their blocks' least for one micro-batch, and the one whose blocks count most does
 * so again; see stages_ahead(). */
double instance_survey_events(const struct instance *instance)
{
    struct chains chains;
    chains_init(&chains, instance, offsetof(struct choices, least_steady_s), 0, INFINITY);
    double steady_s = chains_head(&chains, instance->point.stages, instance->blocks)->longest_s;
    chains_finish(&chains);
    return instance->before[instance->blocks].seconds + (isfinite(steady_s) ? steady_s : 0) +
           instance->bases[0].once_s;
}

static double longest_among(const struct instance *instance, size_t member,
                            const struct least *others)
{
    struct chains chains;
    chains_init_among(&chains, instance, member, others);
    double longest_s = chains_head(&chains, instance->point.stages, instance->blocks)->longest_s;
    chains_finish(&chains);
    return isfinite(longest_s) ? longest_s : 0;
}

/* Stage L begins once forwards have passed the stages before, and does all of its work.
 *
 * And with s and a as in stages_ahead(): before the last forward on L, m - s backwards have run
 * there or more; its micro-batch has to pass the stages behind, and then u follows. That is, with
 * the forwards of the stages before and T of those behind, m F + (m - s) B + B + u = (m - a) T +
 * a F + u. */
double instance_late_events(const struct instance *instance)
{
    size_t work = offsetof(struct choices, work_s), late = offsetof(struct choices, late_s);
    double once_s = INFINITY;
    for (int i = 0; i < instance->point.stages; i++)
        once_s = fmin(once_s, instance->bases[i].once_s);
    struct least *ahead = xcalloc((size_t)instance->blocks + 1, sizeof *ahead);
    for (int b = 0; b <= instance->blocks; b++)
        ahead[b].forward_s = instance->surveyed[b].forward_s;
    double longest_s = fmax(longest_among(instance, work, ahead),
                            longest_among(instance, late, instance->surveyed));
    free(ahead);
    return longest_s + once_s;
}

double instance_events_bound(const struct instance *instance)
{
    return survey_is_hopeless(instance) ? instance->early_events_s : instance->events_s;
}
