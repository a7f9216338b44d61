/* scout.c - tensor roles on the first axes, for every number of them; sharding and recomputation
 * only as far as memory demands. */
#include "coordinator/planner/exact/scout.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is given up for memory, the cheapest first. */
static const struct {
    int zero;
    enum recompute recompute;
} savings[] = {
    {0, RECOMPUTE_NONE},      {1, RECOMPUTE_NONE}, {2, RECOMPUTE_NONE}, {1, RECOMPUTE_SELECTIVE},
    {3, RECOMPUTE_SELECTIVE}, {1, RECOMPUTE_FULL}, {3, RECOMPUTE_FULL},
};

/* Fill stage after stage up to most_s each; a single block may exceed it. */
static bool divide(struct plan *plan, const double *seconds, int stride, double most_s)
{
    int stage = 0;
    double sum = 0;
    for (int b = 0; b < plan->block_count; b++) {
        int left = plan->block_count - b, stages_left = plan->stage_count - 1 - stage;
        bool full = b > 0 && sum + seconds[stage * stride + b] > most_s;
        if (b > plan->stages[stage].block_first && (full || left == stages_left)) {
            if (stages_left == 0)
                return false;
            stage++;
            sum = 0;
            plan->stages[stage].block_first = b;
        }
        sum += seconds[stage * stride + b];
        plan->blocks[b].stage = stage;
        plan->stages[stage].block_count = b + 1 - plan->stages[stage].block_first;
    }
    return stage == plan->stage_count - 1 && isfinite(sum);
}

bool scout_balance(struct plan *plan, const double *seconds, int stride)
{
    double low = 0, high = 0;
    for (int b = 0; b < plan->block_count; b++) {
        double most = 0;
        for (int i = 0; i < plan->stage_count; i++)
            if (isfinite(seconds[i * stride + b]))
                most = fmax(most, seconds[i * stride + b]);
        high += most;
    }
    high *= 1 + 1e-9;
    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;
        if (divide(plan, seconds, stride, middle))
            high = middle;
        else
            low = middle;
    }
    return divide(plan, seconds, stride, high);
}

#define SAVING_MOST 3 /* index of the first saving that scout_smallest() tries */

struct scout {
    struct costs *costs;
    const struct space_point *point;
    const struct site **sites; /* per stage */
    struct plan *plan;
    double *seconds; /* [stage * blocks + block]; infinity: cannot be there */
    struct strategy *strategies;
};

/* What all blocks shall have as far as their sites and sizes permit. */
struct wanted {
    const char *role; /* of the first `fast` axes; the others split the batch */
    int fast, zero;
    enum recompute recompute;
};

static struct strategy make_strategy(const struct site *site, const struct wanted *wanted, bool end)
{
    struct strategy strategy = {.zero = wanted->zero, .recompute = wanted->recompute};
    for (int axis = 0; axis < site->mesh.axes; axis++)
        strategy.roles[axis] = role_find(axis < wanted->fast ? wanted->role : "batch");
    if (end)
        strategy.recompute = RECOMPUTE_NONE;
    return strategy;
}

/* Set the strategy on a block, or batch alone if the block's sizes do not permit it. Returns its
 * seconds there, or infinity. */
static double lay(struct scout *scout, int stage, int block, struct wanted wanted)
{
    const struct site *site = scout->sites[stage];
    int64_t samples = scout->point->samples;
    int blocks = scout->plan->block_count;
    struct part_cost cost;
    bool end = block == 0 || block + 1 == blocks;
    struct strategy strategy = make_strategy(site, &wanted, end);
    bool may = space_allows(scout->costs, site, block, &strategy, samples);
    if (!may && wanted.fast > 0) {
        wanted.fast = 0;
        strategy = make_strategy(site, &wanted, end);
        may = space_allows(scout->costs, site, block, &strategy, samples);
    }
    if (!may || costs_block(scout->costs, site, block, &strategy, NULL, samples, &cost, NULL) < 0)
        return INFINITY;
    scout->strategies[stage * blocks + block] = strategy;
    return cost.forward_s + cost.backward_s;
}

/* Set it on every stage. Equal blocks of a stage, and stages of the same kind, are computed
 * once. */
static void lay_all(struct scout *scout, const struct wanted *wanted)
{
    const int *place = scout->costs->model.place;
    int blocks = scout->plan->block_count;
    for (int i = 0; i < scout->point->stages; i++) {
        int like = 0;
        while (scout->sites[like]->kind != scout->sites[i]->kind)
            like++;
        for (int b = 0; b < blocks; b++) {
            int at = i * blocks + b, same = like < i ? like * blocks + b : at - 1;
            if (like < i || (b > 0 && place[b] == place[b - 1])) {
                scout->seconds[at] = scout->seconds[same];
                scout->strategies[at] = scout->strategies[same];
            } else {
                scout->seconds[at] = lay(scout, i, b, *wanted);
            }
        }
    }
}

/* false: there is no such plan. */
static bool set_plan(struct scout *scout, const struct wanted *wanted)
{
    struct plan *plan = scout->plan;
    lay_all(scout, wanted);
    if (!scout_balance(plan, scout->seconds, plan->block_count))
        return false;
    for (int b = 0; b < plan->block_count; b++) {
        struct plan_block *block = &plan->blocks[b];
        const struct strategy *strategy = &scout->strategies[block->stage * plan->block_count + b];
        memcpy(block->roles, strategy->roles, sizeof block->roles);
        block->zero = strategy->zero;
        block->recompute = strategy->recompute;
    }
    return true;
}

/* A lower bound on the step from the middle block and its equals alone, on the stage that is
 * fastest at it; infinity: no stage can hold it. */
static double least_seconds(struct scout *scout, const struct wanted *wanted)
{
    const int *place = scout->costs->model.place;
    int middle = scout->plan->block_count / 2, count = 0;
    double least = INFINITY;
    for (int i = 0; i < scout->point->stages; i++)
        if (i == 0 || scout->sites[i]->kind != scout->sites[i - 1]->kind)
            least = fmin(least, lay(scout, i, middle, *wanted));
    for (int b = 0; b < scout->plan->block_count; b++)
        count += place[b] == place[middle];
    double longest = ceil((double)count / scout->point->stages) * least;
    return count * least + (scout->point->micro_batches - 1) * longest;
}

/* One vector of roles with the fewest savings that fit. Returns a plan that is better than upper_s.
 * The estimate interpolates, by memory, between that plan and the preceding one, which does not
 * fit. */
static struct plan *try_vector(struct scout *scout, struct wanted wanted, bool shards,
                               double upper_s, double *formula_s, double *hope_s)
{
    double step_s = INFINITY, bound_s, before_s = INFINITY, share, share_before = 1;
    bool fits = false;
    for (size_t i = 0; i < (shards ? sizeof savings / sizeof *savings : 1) && !fits; i++) {
        wanted.zero = savings[i].zero;
        wanted.recompute = savings[i].recompute;
        if (least_seconds(scout, &wanted) >= upper_s)
            return NULL;
        if (!set_plan(scout, &wanted))
            continue;
        if (evaluate_plan(scout->costs, scout->plan, &step_s, &bound_s, &fits, NULL) < 0 ||
            evaluate_filling(scout->costs, scout->plan, &share, NULL) < 0 || step_s >= upper_s)
            return NULL;
        if (!fits && share < (isfinite(before_s) ? share_before : INFINITY)) {
            before_s = step_s;
            share_before = share;
        }
    }
    if (!fits)
        return NULL;
    *formula_s = *hope_s = step_s;
    if (before_s < step_s)
        *hope_s -= (step_s - before_s) * (1 - share) / (share_before - share);
    return plan_copy(scout->plan);
}

static void scout_init(struct scout *scout, struct costs *costs, const struct space_point *point)
{
    *scout = (struct scout){.costs = costs, .point = point, .plan = space_plan(costs, point)};
    size_t cells = (size_t)point->stages * (size_t)scout->plan->block_count;
    scout->sites = xcalloc((size_t)point->stages, sizeof *scout->sites);
    scout->seconds = xcalloc(cells, sizeof *scout->seconds);
    scout->strategies = xcalloc(cells, sizeof *scout->strategies);
    space_sites(costs, point, scout->sites);
}

static void scout_finish(struct scout *scout)
{
    free(scout->sites);
    free(scout->seconds);
    free(scout->strategies);
    plan_destroy(scout->plan);
}

/* The largest number of axes of any stage. */
static int axes_of(const struct scout *scout)
{
    int axes = 0;
    for (int i = 0; i < scout->point->stages; i++)
        axes = scout->sites[i]->mesh.axes > axes ? scout->sites[i]->mesh.axes : axes;
    return axes;
}

struct plan *scout_point(struct costs *costs, const struct space_point *point, double upper_s,
                         double *formula_s, double *hope_s)
{
    struct scout scout;
    struct plan *best = NULL;
    scout_init(&scout, costs, point);
    int axes = axes_of(&scout);
    *formula_s = *hope_s = INFINITY;
    for (int fast = 0; fast <= axes; fast++) {
        double found_s, hoped_s;
        struct wanted wanted = {.role = "tensor", .fast = fast};
        struct plan *plan = try_vector(&scout, wanted, fast < axes, upper_s, &found_s, &hoped_s);
        if (!plan)
            continue;
        *hope_s = fmin(*hope_s, hoped_s);
        if (found_s < *formula_s) {
            struct plan *worse = best;
            best = plan;
            plan = worse;
            *formula_s = found_s;
        }
        plan_destroy(plan);
    }
    scout_finish(&scout);
    return best;
}

/* Try the strongest savings with one vector of roles; copies a plan whose share is below *least to
 * *best. */
static void try_savings(struct scout *scout, struct wanted wanted, bool shards, struct plan **best,
                        double *least)
{
    for (size_t i = SAVING_MOST; i < sizeof savings / sizeof *savings; i++) {
        double share;
        wanted.zero = shards ? savings[i].zero : 0;
        wanted.recompute = savings[i].recompute;
        if (!set_plan(scout, &wanted) ||
            evaluate_filling(scout->costs, scout->plan, &share, NULL) < 0 || share >= *least)
            continue;
        *least = share;
        plan_destroy(*best);
        *best = plan_copy(scout->plan);
    }
}

struct plan *scout_smallest(struct costs *costs, const struct space_point *point, double *share)
{
    static const char *const rows[] = {"tensor", "tensor_seq"};
    struct scout scout;
    struct plan *best = NULL;
    scout_init(&scout, costs, point);
    int axes = axes_of(&scout);
    *share = INFINITY;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int fast = i ? 1 : 0; fast <= axes; fast++) {
            struct wanted wanted = {.role = rows[i], .fast = fast};
            try_savings(&scout, wanted, fast < axes, &best, share);
        }
    scout_finish(&scout);
    return best;
}
