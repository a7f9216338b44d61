/* instance.c - all blocks on all stages: choices made once, joints as they are asked for. */
#include "coordinator/planner/instance.h"

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/evaluate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Did a look at the blocks between the ends say it all? */
static bool is_hopeless(const struct instance *instance)
{
    return isfinite(instance->early_upper_s) && instance->early_s >= instance->early_upper_s;
}

/* Those of this stage's kind and the block's place, surveyed if there are none yet. */
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
    instance->slots[stage] =
        evaluate_slots(point->schedule, stage, point->stages, point->micro_batches);
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

/* Seconds of a block at either end, whatever its strategy: one of c equal devices has a c-th of
 * its work at least, and launches every kernel (see bounds.c). */
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

/* By formula and simulation, of the blocks between the ends and as much of these as is known
 * without looking at their strategies. */
static void bound_early(struct instance *instance)
{
    int m = instance->point.micro_batches, stages = instance->point.stages;
    int last = instance->blocks - 1, per_stage = (last - 1 + stages - 1) / stages;
    double least_s = INFINITY, sum_s = 0, simulated_s = 0, alone_s = 0;
    for (int b = 1; b < last; b++) {
        double seconds = instance_least(instance, b, offsetof(struct choices, least_s));
        least_s = fmin(least_s, seconds);
        sum_s += seconds;
        alone_s += instance_least(instance, b, offsetof(struct choices, least_alone_s));
        simulated_s += instance_least(instance, b, offsetof(struct choices, least_bound_s));
    }
    double ends_s = end_seconds(instance, 0, 0) + end_seconds(instance, stages - 1, last);
    double longest_s = fmax((sum_s + ends_s) / stages, last > 1 ? per_stage * least_s : 0);
    instance->early_s = stages == 1 ? alone_s + m * ends_s + instance->bases[0].once_s
                                    : sum_s + ends_s + (m - 1) * longest_s;
    instance->early_simulated_s = m * simulated_s / stages;
}

/* A stage of a plan that is wanted takes no longer: it does so m - 1 times, and once with all. */
static double find_most(const struct instance *instance)
{
    int again = instance->point.micro_batches - 1;
    double rest_s = instance->upper_s - instance->before[instance->blocks].seconds;
    return again > 0 ? fmax(rest_s, 0) / again : instance->upper_s;
}

/* m T + u of some stage; where all divisions have a longer one, no plan is wanted. */
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

/* Where no division is fast enough, some stage takes longer than it may. */
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

static void sum_least(struct instance *instance, bool filled)
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

/* Of one stage: what m T + u is at least, of choices that have been surveyed of late. */
static int settle(struct instance *instance, size_t first, struct error *err)
{
    int rc = 0;
    instance->costs->one_rank = instance->relaxed;
    for (size_t i = first; i < instance->all_count && rc == 0; i++)
        if (instance->point.stages == 1)
            rc = choices_settle(instance->all[i], instance, err);
    instance->costs->one_rank = true; /* no rank that stands for more takes less */
    return rc;
}

/* The blocks between the ends first: they may say that no plan is fast enough. */
static int survey(struct instance *instance, struct error *err)
{
    int last = instance->blocks - 1, rc = 0;
    for (int i = 0; i < instance->point.stages && rc == 0; i++)
        rc = base_stage(instance, i, err);
    if (rc == 0)
        rc = survey_blocks(instance, 1, last, err);
    if (rc < 0) { /* of blocks that are refused the first says why */
        int first = survey_blocks(instance, 0, 1, err);
        return first < 0 ? first : rc;
    }
    size_t count = instance->all_count;
    rc = settle(instance, 0, err);
    if (rc == 0)
        bound_early(instance);
    if (rc < 0 || is_hopeless(instance))
        return rc;
    rc = survey_blocks(instance, 0, 1, err);
    if (rc == 0)
        rc = survey_blocks(instance, last, last + 1, err);
    if (rc == 0)
        rc = settle(instance, count, err);
    return rc;
}

int instance_survey(struct instance *instance, struct costs *costs, const struct space_point *point,
                    bool relaxed, double upper_s, struct error *err)
{
    size_t stages = (size_t)point->stages;
    *instance = (struct instance){.costs = costs,
                                  .upper_s = upper_s,
                                  .early_upper_s = upper_s,
                                  .point = *point,
                                  .relaxed = relaxed};
    costs->one_rank = true; /* no rank that stands for more takes less */
    instance->blocks = (int)costs->request->graph->block_count;
    instance->sites = xcalloc(stages, sizeof(struct site *));
    instance->slots = xcalloc(stages, sizeof *instance->slots);
    instance->bases = xcalloc(stages, sizeof *instance->bases);
    instance->pairs = xcalloc(stages, sizeof *instance->pairs);
    instance->of = xcalloc(stages * (size_t)instance->blocks, sizeof(struct choices *));
    instance->before = xcalloc((size_t)instance->blocks + 1, sizeof *instance->before);
    space_sites(costs, point, instance->sites);
    int rc = survey(instance, err);
    costs->one_rank = relaxed;
    for (int i = 1; i < point->stages; i++)
        instance->pairs[i] = sites_pair(&costs->sites, instance->sites[i - 1], instance->sites[i]);
    if (rc == 0 && !is_hopeless(instance))
        sum_least(instance, false);
    return rc;
}

int instance_fill(struct instance *instance, double upper_s, struct error *err)
{
    int rc = 0;
    instance->upper_s = upper_s;
    if (isfinite(upper_s) && instance_formula_bound(instance) >= upper_s)
        return 0;
    for (size_t i = 0; i < instance->all_count && rc == 0; i++)
        rc = choices_fill(instance->all[i], instance, err);
    if (rc < 0)
        return rc;
    crossings_init(&instance->crossings, instance);
    instance->tied = tied_floor_set(instance);
    sum_least(instance, true);
    memory_price_init(&instance->price, instance);
    return 0;
}

int instance_init(struct instance *instance, struct costs *costs, const struct space_point *point,
                  bool relaxed, double upper_s, struct error *err)
{
    int rc = instance_survey(instance, costs, point, relaxed, upper_s, err);
    return rc < 0 ? rc : instance_fill(instance, upper_s, err);
}

void instance_finish(struct instance *instance)
{
    instance->costs->one_rank = false;
    for (size_t i = 0; i < instance->all_count; i++)
        choices_destroy(instance->all[i]);
    for (size_t i = 0; i < instance->joints_count; i++) {
        free(instance->joints[i]->costs);
        free(instance->joints[i]->known);
        free(instance->joints[i]);
    }
    free(instance->all);
    free(instance->joints);
    free(instance->sites);
    free(instance->slots);
    free(instance->bases);
    free(instance->pairs);
    free(instance->before);
    chains_finish(&instance->chains);
    crossings_finish(&instance->crossings);
    memory_price_finish(&instance->price);
    free(instance->of);
}

uint64_t instance_memory(const struct instance *instance, int stage)
{
    return instance->relaxed ? UINT64_MAX / 2 : instance->sites[stage]->memory_bytes;
}

/* The least of what follows a step's micro-batches on the first stage. */
static double least_once(const struct instance *instance)
{
    const struct choices *first = instance_choices(instance, 0, 0);
    double least_s = INFINITY;
    for (size_t i = 0; i < first->count; i++)
        least_s = fmin(least_s, first->items[i].cost.once_s);
    return fmax(isfinite(least_s) ? least_s : 0, instance->tied.first_s);
}

/* With what follows them on the last stage: the backwards of those before it overlap with that. */
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

const struct choices *instance_choices(const struct instance *instance, int stage, int block)
{
    return instance->of[stage * instance->blocks + block];
}

static struct joints *find_joints(struct instance *instance, const struct choices *before,
                                  const struct choices *after, int side, int pair)
{
    for (size_t i = 0; i < instance->joints_count; i++) {
        /* Mostly it is asked for those of the last time again. */
        size_t index = (instance->joints_last + i) % instance->joints_count;
        struct joints *known = instance->joints[index];
        if (known->before == before && known->after == after && known->side == side &&
            known->pair == pair) {
            instance->joints_last = index;
            return known;
        }
    }
    size_t count = (size_t)before->exits * (size_t)after->entries;
    struct joints *joints = xcalloc(1, sizeof *joints);
    *joints = (struct joints){.before = before, .after = after, .side = side, .pair = pair};
    joints->costs = xcalloc(count, sizeof *joints->costs);
    joints->known = xcalloc(count, sizeof *joints->known);
    instance->joints = grow(instance->joints, instance->joints_count, &instance->joints_capacity,
                            sizeof(struct joints *));
    instance->joints[instance->joints_count++] = joints;
    return joints;
}

/* What cannot be redistributed is never taken. */
static const struct part_cost impossible = {.forward_s = INFINITY, .state_bytes = UINT64_MAX / 4};

const struct part_cost *instance_joint(struct instance *instance, int stage, int block, int exit,
                                       int entry)
{
    const struct choices *before = instance_choices(instance, stage, block),
                         *after = instance_choices(instance, stage, block + 1);
    struct joints *joints = find_joints(instance, before, after, -1, 0);
    int index = exit * after->entries + entry;
    if (!joints->known[index] &&
        costs_joint(instance->costs, instance->sites[stage], block, &before->exit_like[exit],
                    &after->entry_like[entry], instance->point.samples, &joints->costs[index],
                    NULL) < 0)
        joints->costs[index] = impossible;
    joints->known[index] = true;
    return &joints->costs[index];
}

const struct part_cost *instance_crossing(struct instance *instance, int stage, int block, int exit,
                                          int entry, int side)
{
    const struct site *const *sites = &instance->sites[stage - side];
    const struct choices *before = instance_choices(instance, stage - side, block),
                         *after = instance_choices(instance, stage - side + 1, block + 1);
    struct joints *joints =
        find_joints(instance, before, after, side, instance->pairs[stage - side + 1]);
    int index = exit * after->entries + entry;
    if (!joints->known[index] &&
        costs_crossing(instance->costs, sites, block, &before->exit_like[exit],
                       &after->entry_like[entry], instance->point.samples, side,
                       &joints->costs[index], NULL) < 0)
        joints->costs[index] = impossible;
    joints->known[index] = true;
    return &joints->costs[index];
}

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

double instance_formula_bound(const struct instance *instance)
{
    if (is_hopeless(instance))
        return instance->early_s;
    if (instance->point.stages == 1)
        return instance->bases[0].once_s + instance->before[instance->blocks].alone_s;
    double step_s = instance->sum_s + (instance->point.micro_batches - 1) * instance->longest_s +
                    least_once(instance) + instance->bases[0].once_s;
    step_s = fmax(step_s, last_seconds(instance));
    return fmin(fmax(step_s, instance->stage_s), instance->upper_s);
}

/* The stage that works longest on a micro-batch works on all of them, and the first one passes
 * all stages: no less than either. */
double instance_bound(const struct instance *instance)
{
    if (is_hopeless(instance))
        return instance->early_simulated_s;
    size_t member = offsetof(struct choices, least_bound_s);
    int m = instance->point.micro_batches;
    double sum = 0;
    struct chains chains;
    for (int b = 0; b < instance->blocks; b++)
        sum += instance_least(instance, b, member);
    chains_init(&chains, instance, member, 0, instance->upper_s / m);
    const struct chain *all = chains_head(&chains, instance->point.stages, instance->blocks);
    double longest_s = fmin(all->longest_s, instance->upper_s / m);
    chains_finish(&chains);
    return fmax(sum, m * longest_s);
}
