/* scout.c - prefixes of the axes for tensor roles; sharding and recomputation as memory wants. */
#include "coordinator/planner/scout.h"

#include "common/base/memory.h"
#include "coordinator/planner/evaluate.h"

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

/* Chains of blocks, none longer than most_s unless it is one block. */
static bool divide(struct plan *plan, const double *seconds, double most_s)
{
    int stage = 0;
    double sum = 0;
    for (int b = 0; b < plan->block_count; b++) {
        int left = plan->block_count - b, stages_left = plan->stage_count - 1 - stage;
        bool full = b > 0 && sum + seconds[b] > most_s;
        if (b > plan->stages[stage].block_first && (full || left == stages_left)) {
            if (stages_left == 0)
                return false;
            stage++;
            sum = 0;
            plan->stages[stage].block_first = b;
        }
        sum += seconds[b];
        plan->blocks[b].stage = stage;
        plan->stages[stage].block_count = b + 1 - plan->stages[stage].block_first;
    }
    return stage == plan->stage_count - 1;
}

bool scout_balance(struct plan *plan, const double *seconds)
{
    double low = 0, high = 0;
    for (int b = 0; b < plan->block_count; b++)
        high += seconds[b];
    high *= 1 + 1e-9;
    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;
        if (divide(plan, seconds, middle))
            high = middle;
        else
            low = middle;
    }
    return divide(plan, seconds, high);
}

#define SAVING_MOST 3 /* from this one on */

struct scout {
    struct costs *costs;
    const struct space_point *point;
    const struct site *site; /* of the first stage; the others' axes are like its own */
    struct plan *plan;
    double *seconds; /* per block */
};

/* Lays the strategy on a block, or batch alone where the block's sizes refuse it. */
static bool set_block(struct scout *scout, int block, struct strategy strategy)
{
    struct part_cost cost;
    bool end = block == 0 || block + 1 == scout->plan->block_count;
    if (end)
        strategy.recompute = RECOMPUTE_NONE;
    bool may = space_allows(scout->costs, scout->site, block, &strategy, scout->point->samples);
    for (int axis = 0; axis < scout->site->mesh.axes && !may; axis++)
        strategy.roles[axis] = role_find("batch");
    if ((!may &&
         !space_allows(scout->costs, scout->site, block, &strategy, scout->point->samples)) ||
        costs_block(scout->costs, scout->site, block, &strategy, NULL, scout->point->samples, &cost,
                    NULL) < 0)
        return false;
    memcpy(scout->plan->blocks[block].roles, strategy.roles, sizeof strategy.roles);
    scout->plan->blocks[block].zero = strategy.zero;
    scout->plan->blocks[block].recompute = strategy.recompute;
    scout->seconds[block] = cost.forward_s + cost.backward_s;
    return true;
}

/* Equal blocks are asked for once. */
static bool set_blocks(struct scout *scout, const struct strategy *strategy)
{
    const int *place = scout->costs->model.place;
    for (int b = 0; b < scout->plan->block_count; b++) {
        if (b > 0 && place[b] == place[b - 1]) {
            scout->plan->blocks[b] = scout->plan->blocks[b - 1];
            scout->seconds[b] = scout->seconds[b - 1];
        } else if (!set_block(scout, b, *strategy)) {
            return false;
        }
    }
    return true;
}

/* Seconds at least, from the middle block and its likes alone; infinity: it takes no such strategy.
 */
static double least_seconds(struct scout *scout, const struct strategy *strategy)
{
    const int *place = scout->costs->model.place;
    int middle = scout->plan->block_count / 2, count = 0;
    if (!set_block(scout, middle, *strategy))
        return INFINITY;
    for (int b = 0; b < scout->plan->block_count; b++)
        count += place[b] == place[middle];
    double longest = ceil((double)count / scout->point->stages) * scout->seconds[middle];
    return count * scout->seconds[middle] + (scout->point->micro_batches - 1) * longest;
}

/* One vector of roles with as little given up as fits. Returns a better plan than upper_s. What did
 * not fit before it lies on the line between the two, as far as memory goes. */
static struct plan *try_vector(struct scout *scout, struct strategy strategy, bool shards,
                               double upper_s, double *formula_s, double *hope_s)
{
    double step_s = INFINITY, bound_s, before_s = INFINITY, share, share_before = 1;
    bool fits = false;
    for (size_t i = 0; i < (shards ? sizeof savings / sizeof *savings : 1) && !fits; i++) {
        strategy.zero = savings[i].zero;
        strategy.recompute = savings[i].recompute;
        if (least_seconds(scout, &strategy) >= upper_s)
            return NULL;
        if (!set_blocks(scout, &strategy))
            continue;
        if (!scout_balance(scout->plan, scout->seconds) ||
            evaluate_plan(scout->costs, scout->plan, &step_s, &bound_s, &fits, NULL) < 0 ||
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

static bool are_like(const struct site *const *sites, int count)
{
    for (int i = 1; i < count; i++)
        if (sites[i]->kind != sites[0]->kind)
            return false;
    return true;
}

/* false: the stages' axes mean different things. */
static bool scout_init(struct scout *scout, struct costs *costs, const struct space_point *point)
{
    const struct site **sites = xcalloc((size_t)point->stages, sizeof *sites);
    space_sites(costs, point, sites);
    *scout = (struct scout){costs, point, sites[0], space_plan(costs, point), NULL};
    scout->seconds = xcalloc((size_t)scout->plan->block_count, sizeof *scout->seconds);
    bool like = are_like(sites, point->stages);
    free(sites);
    return like;
}

static void scout_finish(struct scout *scout)
{
    free(scout->seconds);
    plan_destroy(scout->plan);
}

/* The first `fast` axes with this role, the others batch. */
static struct strategy make_strategy(const struct scout *scout, const char *role, int fast)
{
    struct strategy strategy = {0};
    for (int axis = 0; axis < scout->site->mesh.axes; axis++)
        strategy.roles[axis] = role_find(axis < fast ? role : "batch");
    return strategy;
}

struct plan *scout_point(struct costs *costs, const struct space_point *point, double upper_s,
                         double *formula_s, double *hope_s)
{
    struct scout scout;
    struct plan *best = NULL;
    bool like = scout_init(&scout, costs, point);
    int axes = scout.site->mesh.axes;
    *formula_s = *hope_s = INFINITY;
    for (int fast = 0; fast <= axes && like; fast++) {
        double found_s, hoped_s;
        struct plan *plan = try_vector(&scout, make_strategy(&scout, "tensor", fast), fast < axes,
                                       upper_s, &found_s, &hoped_s);
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

/* The savings that save most with one vector of roles: copies a plan that is smaller than *share to
 * *best. */
static void try_savings(struct scout *scout, struct strategy strategy, bool shards,
                        struct plan **best, double *least)
{
    for (size_t i = SAVING_MOST; i < sizeof savings / sizeof *savings; i++) {
        double share;
        strategy.zero = shards ? savings[i].zero : 0;
        strategy.recompute = savings[i].recompute;
        if (!set_blocks(scout, &strategy) || !scout_balance(scout->plan, scout->seconds) ||
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
    bool like = scout_init(&scout, costs, point);
    int axes = scout.site->mesh.axes;
    *share = INFINITY;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && like; i++)
        for (int fast = i ? 1 : 0; fast <= axes; fast++)
            try_savings(&scout, make_strategy(&scout, rows[i], fast), fast < axes, &best, share);
    scout_finish(&scout);
    return best;
}
