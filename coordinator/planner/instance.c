/* instance.c - costs of all choices, and those that are never worth taking left out. */
#include "coordinator/planner/instance.h"

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/evaluate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct part_ends ends_of(struct costs *costs, const struct site *site, int place,
                                const struct strategy *strategy)
{
    struct part_ends ends;
    struct plan *plan = costs->one;
    plan->stages[0].mesh = site->mesh;
    plan->stages[0].block_first = 0;
    plan->stages[0].block_count = plan->block_count;
    for (int b = 0; b < plan->block_count; b++)
        plan->blocks[b].stage = 0;
    memcpy(plan->blocks[place].roles, strategy->roles, sizeof strategy->roles);
    lower_ends(costs->model.graph, plan, place, &ends, NULL);
    return ends;
}

/* Is b nowhere better than a? Where weights are tied, the other end's costs depend on the tie, and
 * what a user of them shards is not known here: its costs are as if they were its own. */
static bool dominates(const struct choice *a, const struct choice *b)
{
    const struct part_cost *x = &a->cost, *y = &b->cost;
    return a->entry == b->entry && a->exit == b->exit && a->tie == b->tie &&
           (a->tie == 0 || a->strategy.zero == b->strategy.zero) && x->forward_s <= y->forward_s &&
           x->forward_s + x->backward_s <= y->forward_s + y->backward_s && x->once_s <= y->once_s &&
           (x->buckets & ~y->buckets) == 0 && x->state_bytes <= y->state_bytes &&
           x->saved_bytes <= y->saved_bytes && x->communication_bytes <= y->communication_bytes &&
           x->forward_bytes <= y->forward_bytes && x->other_bytes <= y->other_bytes;
}

/* Of two that are equal the first stays. */
static void drop_dominated(struct choices *choices)
{
    size_t kept = 0;
    for (size_t i = 0; i < choices->count; i++) {
        bool worse = false;
        for (size_t j = 0; j < choices->count && !worse; j++)
            worse = j != i && dominates(&choices->items[j], &choices->items[i]) &&
                    (j < i || !dominates(&choices->items[i], &choices->items[j]));
        if (!worse)
            choices->items[kept++] = choices->items[i];
    }
    choices->count = kept;
}

static void number_ends(struct costs *costs, const struct site *site, struct choices *choices)
{
    size_t count = choices->count;
    struct part_ends *ends = xcalloc(count, sizeof *ends);
    int *first_entry = xcalloc(count, sizeof *first_entry);
    int *first_exit = xcalloc(count, sizeof *first_exit);
    choices->entry_like = xcalloc(count, sizeof *choices->entry_like);
    choices->exit_like = xcalloc(count, sizeof *choices->exit_like);
    for (size_t i = 0; i < count; i++) {
        struct choice *choice = &choices->items[i];
        bool again = i > 0 && memcmp(choice->strategy.roles, choice[-1].strategy.roles,
                                     sizeof choice->strategy.roles) == 0;
        int *entry = &choice->entry, *exit = &choice->exit;
        ends[i] = again ? ends[i - 1] : ends_of(costs, site, choices->place, &choice->strategy);
        while (*entry < choices->entries &&
               memcmp(&ends[first_entry[*entry]].input, &ends[i].input, sizeof ends[i].input) != 0)
            ++*entry;
        while (*exit < choices->exits &&
               memcmp(&ends[first_exit[*exit]].output, &ends[i].output, sizeof ends[i].output) != 0)
            ++*exit;
        if (*entry == choices->entries) {
            first_entry[choices->entries] = (int)i;
            choices->entry_like[choices->entries++] = choice->strategy;
        }
        if (*exit == choices->exits) {
            first_exit[choices->exits] = (int)i;
            choices->exit_like[choices->exits++] = choice->strategy;
        }
    }
    free(ends);
    free(first_entry);
    free(first_exit);
}

/* A tied weight may be sharded less than its second user would: unsharded is least, and what its
 * user adds once a step is not known. */
static void find_least(struct instance *instance, const struct site *site, int block,
                       struct choices *choices)
{
    bool tied = instance->costs->model.tied && block == instance->blocks - 1;
    choices->least_s = choices->least_forward_s = INFINITY;
    choices->least_alone_s = INFINITY;
    choices->least_bound_s = choices->omitted_s;
    for (size_t i = 0; i < choices->count; i++) {
        struct choice *choice = &choices->items[i];
        struct strategy plain = choice->strategy;
        struct part_cost whole, *cost = &choice->cost;
        plain.zero = 0;
        if (tied && costs_block(instance->costs, site, block, &plain, NULL, instance->point.samples,
                                &whole, NULL) == 0)
            cost = &whole;
        choice->floor_s = cost->forward_s + cost->backward_s;
        choice->floor_once_s = tied ? 0 : cost->once_s;
        choices->least_s = fmin(choices->least_s, choice->floor_s);
        choices->least_forward_s = fmin(choices->least_forward_s, cost->forward_s);
        choices->least_bound_s = fmin(choices->least_bound_s, cost->least_s);
        choices->least_alone_s =
            fmin(choices->least_alone_s,
                 instance->point.micro_batches * choice->floor_s + choice->floor_once_s);
    }
}

/* The least recomputation that the job allows takes the least time. No zero does for every weight:
 * a large one had better be gathered once a step, a small one not reduced by itself. */
static bool is_fast(const struct job_plan *plan, const struct strategy *strategy)
{
    int least = RECOMPUTE_NONE;
    while (plan->forbid.recompute >> least & 1)
        least++;
    return (int)strategy->recompute == least;
}

/* Strategies with the roles of this one: how many follow each other. */
static size_t same_roles(const struct strategy *strategies, size_t count)
{
    size_t same = 1;
    while (same < count &&
           memcmp(strategies[same].roles, strategies[0].roles, sizeof strategies->roles) == 0)
        same++;
    return same;
}

static int add_choices(struct instance *instance, const struct site *site, int block,
                       const struct strategy *strategies, size_t count, struct choices *choices,
                       struct error *err)
{
    struct costs *costs = instance->costs;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct choice *choice = &choices->items[choices->count];
        if (instance->relaxed && !is_fast(&costs->request->job->plan, &strategies[i]))
            continue;
        choice->strategy = strategies[i];
        rc = planner_stopped(costs->request)
                 ? -ECANCELED
                 : costs_block(costs, site, block, &strategies[i], NULL, instance->point.samples,
                               &choice->cost, err);
        choice->tie = costs_tie(costs, site, block, &strategies[i]);
        choices->count += rc == 0;
    }
    return rc;
}

/* What roles take at least, whatever is sharded or recomputed besides; is that too slow? */
static bool are_too_slow(struct instance *instance, const struct site *site, int block,
                         struct strategy plain, struct part_cost *cost)
{
    const struct instance_hint *hint = instance->hint;
    plain.zero = 0;
    plain.recompute = RECOMPUTE_NONE;
    return hint &&
           costs_block(instance->costs, site, block, &plain, NULL, instance->point.samples, cost,
                       NULL) == 0 &&
           bounds_block(hint->bounds, &instance->point, block,
                        cost->forward_s + cost->backward_s) >= hint->upper_s;
}

/* Where all are too slow the fastest stay, so that there is something to say it of. */
static int add_roles(struct instance *instance, const struct site *site, int block,
                     const struct strategy *strategies, size_t count, struct choices *choices,
                     struct error *err)
{
    const struct strategy *fastest = NULL;
    double least_s = INFINITY;
    int rc = 0;
    choices->omitted_s = INFINITY;
    for (size_t i = 0, same; i < count && rc == 0; i += same) {
        struct part_cost cost;
        same = same_roles(&strategies[i], count - i);
        if (!are_too_slow(instance, site, block, strategies[i], &cost)) {
            rc = add_choices(instance, site, block, &strategies[i], same, choices, err);
            continue;
        }
        choices->omitted_s = fmin(choices->omitted_s, cost.least_s);
        if (cost.forward_s + cost.backward_s < least_s) {
            least_s = cost.forward_s + cost.backward_s;
            fastest = &strategies[i];
        }
    }
    if (rc == 0 && choices->count == 0 && fastest)
        rc = add_choices(instance, site, block, fastest,
                         same_roles(fastest, count - (size_t)(fastest - strategies)), choices, err);
    return rc;
}

static int fill_choices(struct instance *instance, const struct site *site, int block,
                        struct choices *choices, struct error *err)
{
    struct costs *costs = instance->costs;
    size_t count;
    struct error reason = {0};
    struct strategy *strategies =
        space_strategies(costs, site, block, instance->point.samples, &count, &reason);
    choices->items = xcalloc(count, sizeof *choices->items);
    int rc = add_roles(instance, site, block, strategies, count, choices, err);
    free(strategies);
    if (rc < 0)
        return rc;
    if (choices->count == 0 && reason.text[0])
        return error_set(err, -ERANGE, "%s", reason.text);
    if (choices->count == 0)
        return error_set(err, -EINVAL,
                         "block %s has no strategy that agrees with plan.pin, plan.forbid and its "
                         "sizes on %d devices with micro-batches of %lld samples",
                         costs->request->graph->blocks[block].name, mesh_count(&site->mesh),
                         (long long)instance->point.samples);
    number_ends(costs, site, choices);
    drop_dominated(choices);
    find_least(instance, site, block, choices);
    return 0;
}

/* Those of this stage's kind and the block's place, made if there are none yet. */
static int find_choices(struct instance *instance, int stage, int block, const struct choices **out,
                        struct error *err)
{
    const struct site *site = instance->sites[stage];
    int place = instance->costs->model.place[block];
    for (size_t i = 0; i < instance->all_count; i++)
        if (instance->all[i]->kind == site->kind && instance->all[i]->place == place) {
            *out = instance->all[i];
            return 0;
        }
    struct choices *choices = xcalloc(1, sizeof *choices);
    instance->all =
        grow(instance->all, instance->all_count, &instance->all_capacity, sizeof(struct choices *));
    instance->all[instance->all_count++] = choices;
    choices->kind = site->kind;
    choices->place = place;
    *out = choices;
    return fill_choices(instance, site, block, choices, err);
}

static int fill_stage(struct instance *instance, int stage, struct error *err)
{
    const struct space_point *point = &instance->point;
    const struct site *site = instance->sites[stage];
    instance->slots[stage] =
        evaluate_slots(point->schedule, stage, point->stages, point->micro_batches);
    int rc = costs_base(instance->costs, site, point->devices, &instance->bases[stage], err);
    for (unsigned axes = 0; axes < 1u << site->mesh.axes; axes++)
        instance->fixed_s[stage][axes] = costs_bucket(instance->costs, site, axes);
    for (int axes = 0; axes < 64 && rc == 0; axes++)
        if (instance->bases[stage].buckets >> axes & 1)
            instance->bases[stage].once_s += instance->fixed_s[stage][axes];
    /* The first block is on the first stage, the last one on the last. */
    for (int b = stage > 0; b < instance->blocks - (stage < point->stages - 1) && rc == 0; b++)
        rc = find_choices(instance, stage, b, &instance->of[stage * instance->blocks + b], err);
    return rc;
}

static void sum_least(struct instance *instance)
{
    instance->before = xcalloc((size_t)instance->blocks + 1, sizeof *instance->before);
    for (int b = 0; b < instance->blocks; b++) {
        const struct least *sum = &instance->before[b];
        instance->before[b + 1] = (struct least){
            sum->seconds + instance_least(instance, b, offsetof(struct choices, least_s)),
            sum->forward_s + instance_least(instance, b, offsetof(struct choices, least_forward_s)),
            sum->alone_s + instance_least(instance, b, offsetof(struct choices, least_alone_s))};
    }
}

struct least instance_between(const struct instance *instance, int first, int end)
{
    const struct least *low = &instance->before[first], *high = &instance->before[end];
    return (struct least){high->seconds - low->seconds, high->forward_s - low->forward_s,
                          high->alone_s - low->alone_s};
}

int instance_init(struct instance *instance, struct costs *costs, const struct space_point *point,
                  bool relaxed, struct error *err)
{
    return instance_init_below(instance, costs, point, relaxed, NULL, err);
}

int instance_init_below(struct instance *instance, struct costs *costs,
                        const struct space_point *point, bool relaxed,
                        const struct instance_hint *hint, struct error *err)
{
    size_t stages = (size_t)point->stages;
    *instance =
        (struct instance){.costs = costs, .hint = hint, .point = *point, .relaxed = relaxed};
    costs->one_rank = relaxed;
    instance->blocks = (int)costs->request->graph->block_count;
    instance->sites = xcalloc(stages, sizeof(struct site *));
    instance->slots = xcalloc(stages, sizeof *instance->slots);
    instance->bases = xcalloc(stages, sizeof *instance->bases);
    instance->fixed_s = xcalloc(stages, sizeof *instance->fixed_s);
    instance->pairs = xcalloc(stages, sizeof *instance->pairs);
    instance->of = xcalloc(stages * (size_t)instance->blocks, sizeof(struct choices *));
    space_sites(costs, point, instance->sites);
    int rc = 0;
    for (int i = 0; i < point->stages && rc == 0; i++)
        rc = fill_stage(instance, i, err);
    for (int i = 1; i < point->stages; i++)
        instance->pairs[i] = sites_pair(&costs->sites, instance->sites[i - 1], instance->sites[i]);
    if (rc == 0)
        sum_least(instance);
    return rc;
}

void instance_finish(struct instance *instance)
{
    instance->costs->one_rank = false;
    for (size_t i = 0; i < instance->all_count; i++) {
        free(instance->all[i]->items);
        free(instance->all[i]->entry_like);
        free(instance->all[i]->exit_like);
        free(instance->all[i]);
    }
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
    free(instance->fixed_s);
    free(instance->pairs);
    free(instance->before);
    free(instance->of);
}

uint64_t instance_memory(const struct instance *instance, int stage)
{
    return instance->relaxed ? UINT64_MAX / 2 : instance->sites[stage]->memory_bytes;
}

/* What the step takes at least with this choice of a block. */
static double choice_bound(const struct instance *instance, const struct choices *choices,
                           const struct choice *choice)
{
    int m = instance->point.micro_batches, stages = instance->point.stages;
    double sum = 0, least_once = INFINITY;
    double seconds = choice->floor_s;
    if (stages == 1)
        return instance_formula_bound(instance) - choices->least_alone_s + m * seconds +
               choice->floor_once_s;
    sum = instance->before[instance->blocks].seconds;
    const struct choices *first = instance_choices(instance, 0, 0);
    for (size_t i = 0; i < first->count; i++)
        least_once = fmin(least_once, first->items[i].cost.once_s);
    double once = choices == first ? choice->floor_once_s : least_once;
    sum += seconds - choices->least_s;
    return sum + (m - 1) * fmax(seconds, sum / stages) + once;
}

struct ranked_choice {
    double bound_s;
    size_t index;
};

static int by_bound(const void *first, const void *second)
{
    const struct ranked_choice *a = first, *b = second;
    if (a->bound_s != b->bound_s)
        return a->bound_s < b->bound_s ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static uint64_t bytes_of(const struct choice *choice)
{
    return choice->cost.state_bytes + choice->cost.saved_bytes;
}

/* Half of what may stay is the fastest, half the smallest of the others. */
static bool keep_best(struct choices *choices, struct ranked_choice *ranked, size_t count,
                      size_t most)
{
    bool more = count > most;
    struct choice *kept = xcalloc(count, sizeof *kept);
    for (size_t i = 0; i < count; i++)
        kept[i] = choices->items[ranked[i].index];
    for (size_t i = most / 2; more && i < most; i++) {
        size_t smallest = i;
        for (size_t j = i + 1; j < count; j++)
            if (bytes_of(&kept[j]) < bytes_of(&kept[smallest]))
                smallest = j;
        struct choice swap = kept[i];
        kept[i] = kept[smallest];
        kept[smallest] = swap;
    }
    choices->count = more ? most : count;
    memcpy(choices->items, kept, choices->count * sizeof *kept);
    free(kept);
    return more;
}

bool instance_prune(struct instance *instance, double upper_s, size_t most)
{
    bool cut = false;
    for (size_t c = 0; c < instance->all_count; c++) {
        struct choices *choices = instance->all[c];
        struct ranked_choice *ranked = xcalloc(choices->count, sizeof *ranked);
        size_t count = 0;
        for (size_t i = 0; i < choices->count; i++) {
            ranked[count] =
                (struct ranked_choice){choice_bound(instance, choices, &choices->items[i]), i};
            count += ranked[count].bound_s < upper_s;
        }
        if (count > 1)
            qsort(ranked, count, sizeof *ranked, by_bound);
        cut = keep_best(choices, ranked, count, most) || cut;
        free(ranked);
    }
    return cut;
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

static double bound(const struct instance *instance, size_t member)
{
    double sum = 0, longest = 0;
    for (int b = 0; b < instance->blocks; b++) {
        double seconds = instance_least(instance, b, member);
        sum += seconds;
        longest = fmax(longest, seconds);
    }
    return sum + (instance->point.micro_batches - 1) * fmax(longest, sum / instance->point.stages);
}

double instance_formula_bound(const struct instance *instance)
{
    double once = INFINITY;
    if (instance->point.stages == 1)
        return instance->bases[0].once_s + instance->before[instance->blocks].alone_s;
    const struct choices *first = instance_choices(instance, 0, 0);
    for (size_t i = 0; i < first->count; i++)
        once = fmin(once, first->items[i].cost.once_s);
    return bound(instance, offsetof(struct choices, least_s)) + once + instance->bases[0].once_s;
}

/* The stage that works longest on a micro-batch works on all of them, and the first one passes
 * all stages: no less than either. */
double instance_bound(const struct instance *instance)
{
    double sum = 0, longest = 0;
    for (int b = 0; b < instance->blocks; b++) {
        double seconds = instance_least(instance, b, offsetof(struct choices, least_bound_s));
        sum += seconds;
        longest = fmax(longest, seconds);
    }
    return fmax(sum, instance->point.micro_batches * fmax(longest, sum / instance->point.stages));
}
