/* instance.c - the two halves of building an instance, and joints computed on demand. */
#include "coordinator/planner/exact/instance.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/exact/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int instance_survey(struct instance *instance, struct costs *costs, const struct space_point *point,
                    bool relaxed, double upper_s, struct error *err)
{
    size_t stages = (size_t)point->stages;
    *instance = (struct instance){
        .costs = costs,
        .upper_s = upper_s,
        .early_upper_s = upper_s,
        .point = *point,
        .ahead = stages_ahead(point->schedule, point->stages, point->micro_batches),
        .relaxed = relaxed};
    costs->one_rank = true; /* bounds hold: ranks beyond the first can only take more */
    instance->blocks = (int)costs->request->graph->block_count;
    instance->sites = xcalloc(stages, sizeof(struct site *));
    instance->slots = xcalloc(stages, sizeof *instance->slots);
    instance->bases = xcalloc(stages, sizeof *instance->bases);
    instance->pairs = xcalloc(stages, sizeof *instance->pairs);
    instance->of = xcalloc(stages * (size_t)instance->blocks, sizeof(struct choices *));
    instance->before = xcalloc((size_t)instance->blocks + 1, sizeof *instance->before);
    instance->surveyed = xcalloc((size_t)instance->blocks + 1, sizeof *instance->surveyed);
    space_sites(costs, point, instance->sites);
    int rc = survey_choices(instance, err);
    costs->one_rank = relaxed;
    for (int i = 1; i < point->stages; i++)
        instance->pairs[i] = sites_pair(&costs->sites, instance->sites[i - 1], instance->sites[i]);
    if (rc == 0 && !survey_is_hopeless(instance)) {
        instance_sum(instance, false);
        memcpy(instance->surveyed, instance->before,
               ((size_t)instance->blocks + 1) * sizeof *instance->surveyed);
        for (int b = 0; b < instance->blocks; b++)
            instance->surveyed[b + 1].forward_s =
                instance->surveyed[b].forward_s +
                instance_least(instance, b, offsetof(struct choices, ahead_s));
        instance->events_s = instance_survey_events(instance);
    }
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
    instance_sum(instance, true);
    memory_price_init(&instance->price, instance);
    if (instance->point.stages > 1)
        instance->events_s = fmax(instance->events_s, instance_late_events(instance));
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
    free(instance->surveyed);
    chains_finish(&instance->chains);
    crossings_finish(&instance->crossings);
    memory_price_finish(&instance->price);
    free(instance->of);
}

uint64_t instance_memory(const struct instance *instance, int stage)
{
    return instance->relaxed ? UINT64_MAX / 2 : instance->sites[stage]->memory_bytes;
}

const struct choices *instance_choices(const struct instance *instance, int stage, int block)
{
    return instance->of[stage * instance->blocks + block];
}

static struct joints *find_joints(struct instance *instance, const struct choices *before,
                                  const struct choices *after, int side, int pair)
{
    for (size_t i = 0; i < instance->joints_count; i++) {
        /* Usually the same pair is asked for again. */
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

/* A layout that cannot be redistributed is never chosen. */
static const struct part_cost impossible = {.forward_s = INFINITY, .bytes.state = UINT64_MAX / 4};

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
