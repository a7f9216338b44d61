/* survey.c - surveys the choices of all blocks on all stages where they may be, each set once. The
 * blocks between the ends come first, since their minima may rule the point out. */
#include "coordinator/planner/exact/survey.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/evaluate.h"

#include <math.h>

bool survey_is_hopeless(const struct instance *instance)
{
    return isfinite(instance->early_upper_s) && instance->early_s >= instance->early_upper_s;
}

/* The choices for this stage's kind and the block's place, surveyed if there are none yet. */
static int find_choices(struct instance *instance, int stage, int block, const struct choices **out,
                        struct error *err)
{
    const struct site *site = instance->sites[stage];
    int place = instance->costs->model.place[block];
    for (size_t i = 0; i < instance->all_count; i++)
        if (instance->all[i]->site->kind == site->kind && instance->all[i]->place == place) {
            *out = instance->all[i];
            return 0;
        }
    struct choices *choices = xcalloc(1, sizeof *choices);
    instance->all =
        grow(instance->all, instance->all_count, &instance->all_capacity, sizeof(struct choices *));
    instance->all[instance->all_count++] = choices;
    choices->site = site;
    choices->block = block;
    choices->place = place;
    *out = choices;
    return choices_survey(choices, instance, err);
}

static int base_stage(struct instance *instance, int stage, struct error *err)
{
    const struct space_point *point = &instance->point;
    instance->slots[stage] = point->schedule->in_flight(stage, point->stages, point->micro_batches);
    return costs_base(instance->costs, instance->sites[stage], point->devices,
                      &instance->bases[stage], err);
}

/* Blocks [first, end) on all stages where they may be: the model's first block is on the first
 * stage, its last one on the last. */
static int survey_blocks(struct instance *instance, int first, int end, struct error *err)
{
    int stages = instance->point.stages, rc = 0;
    for (int stage = 0; stage < stages; stage++)
        for (int b = first; b < end && rc == 0; b++)
            if ((b > 0 || stage == 0) && (b < instance->blocks - 1 || stage == stages - 1))
                rc = find_choices(instance, stage, b, &instance->of[stage * instance->blocks + b],
                                  err);
    return rc;
}

/* Least seconds of a block at either end, whatever its strategy: of c equal devices some device has
 * at least a c-th of its work, and launches every kernel (see bounds.c). */
static double end_seconds(struct instance *instance, int stage, int block)
{
    const struct site *site = instance->sites[stage];
    const struct mesh alone = {0};
    struct strategy plain = {0};
    struct part_cost cost;
    if (!site->even ||
        costs_block(instance->costs, sites_add(&instance->costs->sites, site->first, &alone), block,
                    &plain, NULL, instance->point.samples, &cost, NULL) < 0)
        return 0;
    double fixed_s = cost.fixed_s, seconds = cost.forward_s + cost.backward_s;
    return fixed_s + (seconds - fixed_s) / mesh_count(&site->mesh);
}

/* Bounds by formula and by simulation from the blocks between the ends, and from the end blocks as
 * far as possible without looking at their strategies. */
static void bound_early(struct instance *instance)
{
    int m = instance->point.micro_batches, stages = instance->point.stages;
    int last = instance->blocks - 1, per_stage = (last - 1 + stages - 1) / stages;
    double least_s = INFINITY, sum_s = 0, simulated_s = 0, alone_s = 0, step_s = 0;
    double steady_s = INFINITY, steady_sum_s = 0;
    for (int b = 1; b < last; b++) {
        double seconds = instance_least(instance, b, offsetof(struct choices, least_s));
        least_s = fmin(least_s, seconds);
        sum_s += seconds;
        alone_s += instance_least(instance, b, offsetof(struct choices, least_alone_s));
        simulated_s += instance_least(instance, b, offsetof(struct choices, least_bound_s));
        step_s += instance_least(instance, b, offsetof(struct choices, least_step_s));
        double here_s = instance_least(instance, b, offsetof(struct choices, least_steady_s));
        steady_s = fmin(steady_s, here_s);
        steady_sum_s += here_s;
    }
    double ends_s = end_seconds(instance, 0, 0) + end_seconds(instance, stages - 1, last);
    double longest_s = fmax((sum_s + ends_s) / stages, last > 1 ? per_stage * least_s : 0);
    instance->early_s = stages == 1 ? alone_s + m * ends_s + instance->bases[0].once_s
                                    : sum_s + ends_s + (m - 1) * longest_s;
    instance->early_events_s = sum_s + ends_s +
                               fmax(steady_sum_s / stages, last > 1 ? per_stage * steady_s : 0) +
                               instance->bases[0].once_s;
    instance->early_simulated_s = fmax(evaluate_passes(stages, m) * simulated_s, step_s / stages);
}

/* For one stage: tighten the bound on m T + u of choices surveyed since `first`. */
static int settle(struct instance *instance, size_t first, struct error *err)
{
    int rc = 0;
    instance->costs->one_rank = instance->relaxed;
    for (size_t i = first; i < instance->all_count && rc == 0; i++)
        if (instance->point.stages == 1)
            rc = choices_settle(instance->all[i], instance, err);
    instance->costs->one_rank = true; /* bounds hold: ranks beyond the first can only take more */
    return rc;
}

int survey_choices(struct instance *instance, struct error *err)
{
    int last = instance->blocks - 1, rc = 0;
    for (int i = 0; i < instance->point.stages && rc == 0; i++)
        rc = base_stage(instance, i, err);
    if (rc == 0)
        rc = survey_blocks(instance, 1, last, err);
    if (rc < 0) { /* if blocks are refused, the first one gives the reason */
        int first = survey_blocks(instance, 0, 1, err);
        return first < 0 ? first : rc;
    }
    size_t count = instance->all_count;
    rc = settle(instance, 0, err);
    if (rc == 0)
        bound_early(instance);
    if (rc < 0 || survey_is_hopeless(instance))
        return rc;
    rc = survey_blocks(instance, 0, 1, err);
    if (rc == 0)
        rc = survey_blocks(instance, last, last + 1, err);
    if (rc == 0)
        rc = settle(instance, count, err);
    return rc;
}
