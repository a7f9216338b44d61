/* space.c - enumerates the points: number of stages, number of micro-batches, degree of the
 * embedding; with each go the strategies that its layers may have. A point, which fixes everything
 * but these strategies, is solved exactly: a step grows with every T_i and S_i of the formula, so a
 * stage needs only what is not dominated in T, S and memory, and then in T and S.
 *
 * The ways of a stage are sets of strategies for its equal layers, built up layer by layer. Then,
 * for every way of the first stage, the ways of the others are joined from the front: what counts
 * is the sum of T so far and the largest S_i - sum of T up to i. */
#include "coordinator/planner/galvatron/space.h"

#include "common/base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define STRATEGIES_MAX 128

/* A point of the space. */
struct galvatron_point {
    const struct galvatron_problem *problem; /* lent, as is the plan */
    /* Provides stages and micro-batches; embedding and head are the first and the last block. The
     * strategies of its blocks are not read. */
    const struct plan *plan;
    int devices, tensor;                                  /* of a stage; of the embedding */
    struct galvatron_strategy strategies[STRATEGIES_MAX]; /* that a layer may have */
    int strategy_count;
};

/* Some layers of a stage with a strategy each, recorded in its trace. */
struct way {
    struct galvatron_cost cost;
    int trace; /* -1: no layers yet */
};

struct ways_of {
    struct way *items;
    size_t count, capacity;
};

struct choice_made {
    int strategy, before;
};

/* The stages up to one. */
struct prefix {
    double sum, late; /* sum: of T; late: the largest S_i - sum of T up to i */
    /* way: of its last stage; before: index among the prefixes of the stage before */
    int way, before;
};

struct prefixes {
    struct prefix *items;
    size_t count, capacity;
};

struct point_search {
    const struct galvatron_point *point;
    struct ways_of *ways;    /* per stage */
    struct prefixes *joined; /* per stage: of the stages up to it */
    struct choice_made *traces;
    size_t trace_count, trace_capacity;
    double best_s;
    int *best; /* [layer]: index of its strategy */
};

static bool is_worse(const struct galvatron_cost *a, const struct galvatron_cost *b)
{
    return a->seconds >= b->seconds && a->reduce_s >= b->reduce_s && a->bytes >= b->bytes;
}

/* false: another way is nowhere worse. */
static bool add_way(struct ways_of *ways, struct way way)
{
    size_t kept = 0;
    for (size_t i = 0; i < ways->count; i++)
        if (is_worse(&way.cost, &ways->items[i].cost))
            return false;
    for (size_t i = 0; i < ways->count; i++)
        if (!is_worse(&ways->items[i].cost, &way.cost))
            ways->items[kept++] = ways->items[i];
    ways->count = kept;
    ways->items = grow(ways->items, ways->count, &ways->capacity, sizeof *ways->items);
    ways->items[ways->count++] = way;
    return true;
}

/* Extend every way of `fewer` by one layer. */
static void add_layer(struct point_search *search, const struct ways_of *fewer, int strategy,
                      const struct galvatron_cost *layer, struct ways_of *ways)
{
    for (size_t i = 0; i < fewer->count; i++) {
        const struct way *old = &fewer->items[i];
        struct way way = {{old->cost.seconds + layer->seconds, old->cost.reduce_s + layer->reduce_s,
                           old->cost.bytes + layer->bytes},
                          (int)search->trace_count};
        if (way.cost.bytes > galvatron_memory(search->point->problem) || !add_way(ways, way))
            continue;
        search->traces = grow(search->traces, search->trace_count, &search->trace_capacity,
                              sizeof *search->traces);
        search->traces[search->trace_count++] = (struct choice_made){strategy, old->trace};
    }
}

/* The ways of a stage; those that are kept fit, so their memory no longer counts. */
static struct ways_of find_ways(struct point_search *search, int stage)
{
    const struct galvatron_point *point = search->point;
    const struct plan *plan = point->plan;
    int stages = plan->stage_count, m = plan->micro_batches;
    int layers = plan->stages[stage].block_count - (stage == 0) - (stage == stages - 1);
    int slots = stages - stage < m ? stages - stage : m;
    struct ways_of *by_layers = xcalloc((size_t)layers + 1, sizeof *by_layers), best = {0};
    struct galvatron_cost cost;
    if (galvatron_ends(point->problem, point->devices, point->tensor, 0, stage, stages,
                       plan->micro_batch_samples, slots, &cost, NULL) == 0)
        add_way(&by_layers[0], (struct way){cost, -1});
    for (int s = 0; s < point->strategy_count; s++) {
        if (galvatron_layer(point->problem, &point->strategies[s], stages,
                            plan->micro_batch_samples, slots, &cost, NULL) < 0)
            continue;
        for (int l = 1; l <= layers; l++)
            add_layer(search, &by_layers[l - 1], s, &cost, &by_layers[l]);
    }
    for (size_t i = 0; i < by_layers[layers].count; i++) {
        struct way way = by_layers[layers].items[i];
        way.cost.bytes = 0;
        add_way(&best, way);
    }
    for (int l = 0; l <= layers; l++)
        free(by_layers[l].items);
    free(by_layers);
    return best;
}

static void add_prefix(struct prefixes *prefixes, struct prefix prefix)
{
    size_t kept = 0;
    for (size_t i = 0; i < prefixes->count; i++)
        if (prefixes->items[i].sum <= prefix.sum && prefixes->items[i].late <= prefix.late)
            return;
    for (size_t i = 0; i < prefixes->count; i++)
        if (prefixes->items[i].sum < prefix.sum || prefixes->items[i].late < prefix.late)
            prefixes->items[kept++] = prefixes->items[i];
    prefixes->count = kept;
    prefixes->items =
        grow(prefixes->items, prefixes->count, &prefixes->capacity, sizeof *prefixes->items);
    prefixes->items[prefixes->count++] = prefix;
}

/* Give the layers of a stage the strategies of the way; the first block is not a layer. */
static void set_stage(struct point_search *search, int stage, const struct way *way)
{
    int block = search->point->plan->stages[stage].block_first;
    int layer = block > 0 ? block - 1 : 0;
    for (int trace = way->trace; trace >= 0; trace = search->traces[trace].before)
        search->best[layer++] = search->traces[trace].strategy;
}

/* Build all prefixes of this stage from those of the stage before. */
static void join_stage(struct point_search *search, int stage)
{
    const struct prefixes *before = &search->joined[stage - 1];
    const struct ways_of *ways = &search->ways[stage];
    struct prefixes *joined = &search->joined[stage];
    joined->count = 0;
    for (size_t p = 0; p < before->count; p++)
        for (size_t w = 0; w < ways->count; w++) {
            const struct prefix *old = &before->items[p];
            const struct galvatron_cost *cost = &ways->items[w].cost;
            double sum = old->sum + cost->seconds;
            struct prefix prefix = {sum, fmax(old->late, cost->reduce_s - sum), (int)w, (int)p};
            if (stage < search->point->plan->stage_count - 1) {
                add_prefix(joined, prefix);
                continue;
            }
            /* The last stage's own time counts additionally. */
            joined->items = grow(joined->items, joined->count, &joined->capacity, sizeof prefix);
            joined->items[joined->count++] = prefix;
        }
}

/* Choose the best of the last stage's prefixes, each of which is a plan. */
static void take_best(struct point_search *search)
{
    const struct prefixes *joined = search->joined;
    int stages = search->point->plan->stage_count;
    struct galvatron_cost *costs = xcalloc((size_t)stages, sizeof *costs);
    for (size_t p = 0; p < joined[stages - 1].count; p++) {
        for (int i = stages - 1, at = (int)p; i >= 0; at = joined[i--].items[at].before)
            costs[i] = search->ways[i].items[joined[i].items[at].way].cost;
        double step_s = galvatron_step(costs, stages, search->point->plan->micro_batches);
        if (step_s >= search->best_s)
            continue;
        search->best_s = step_s;
        for (int i = stages - 1, at = (int)p; i >= 0; at = joined[i--].items[at].before)
            set_stage(search, i, &search->ways[i].items[joined[i].items[at].way]);
    }
    free(costs);
}

/* With this way of the first stage. */
static void join_stages(struct point_search *search, size_t first)
{
    const struct galvatron_cost *head = &search->ways[0].items[first].cost;
    search->joined[0].count = 0;
    add_prefix(
        &search->joined[0],
        (struct prefix){head->seconds, fmax(0, head->reduce_s - head->seconds), (int)first, -1});
    for (int i = 1; i < search->point->plan->stage_count; i++)
        join_stage(search, i);
    take_best(search);
}

/* Seconds of the best step, with the index of each layer's strategy in `strategies`. Infinity, and
 * nothing is written: none fits the memory, or the profile lacks what is needed. */
static double solve_point(const struct galvatron_point *point, int *strategies)
{
    int stages = point->plan->stage_count;
    struct point_search search = {.point = point, .best_s = INFINITY, .best = strategies};
    search.ways = xcalloc((size_t)stages, sizeof *search.ways);
    search.joined = xcalloc((size_t)stages, sizeof *search.joined);
    for (int i = 0; i < stages; i++)
        search.ways[i] = find_ways(&search, i);
    for (size_t first = 0; first < search.ways[0].count; first++)
        join_stages(&search, first);
    for (int i = 0; i < stages; i++) {
        free(search.ways[i].items);
        free(search.joined[i].items);
    }
    free(search.ways);
    free(search.joined);
    free(search.traces);
    return search.best_s;
}

struct galvatron_space {
    struct galvatron_point point;
    struct plan *plan; /* the plan of this point: roles, stages and sizes */
    const struct graph *graph;
    double best_s;
    struct plan *best;
    bool legal;
};

/* At most two axes, tensor and batch in either order, fastest first. */
static void set_block(struct plan *plan, int block, const struct galvatron_strategy *strategy)
{
    struct plan_block *of = &plan->blocks[block];
    const struct mesh *mesh = &plan->stages[of->stage].mesh;
    int left = strategy->neighbours ? strategy->tensor : strategy->batch;
    for (int axis = 0; axis < mesh->axes; axis++) {
        bool first = left > 1;
        left /= first ? mesh->size[axis] : 1;
        of->roles[axis] = role_find(first == strategy->neighbours ? "tensor" : "batch");
    }
    of->zero = strategy->zero;
    of->recompute = strategy->recompute ? RECOMPUTE_FULL : RECOMPUTE_NONE;
}

/* The layers in even runs, embedding and head at the ends. */
static void divide(struct plan *plan, int layers)
{
    int stages = plan->stage_count, next = 0;
    for (int i = 0; i < stages; i++) {
        int end = i == stages - 1 ? layers + 2 : 1 + (i + 1) * (layers / stages);
        plan->stages[i].block_first = next;
        plan->stages[i].block_count = end - next;
        for (; next < end; next++)
            plan->blocks[next].stage = i;
    }
}

static struct plan *make_plan(const struct galvatron_point *point, int stages, int micro_batches,
                              int64_t samples)
{
    struct plan *plan = plan_create(stages, point->problem->layers + 2);
    divide(plan, point->problem->layers);
    for (int i = 0; i < stages; i++)
        for (int left = point->devices; left > 1; left /= 2)
            plan->stages[i].mesh.size[plan->stages[i].mesh.axes++] = 2;
    plan->micro_batches = micro_batches;
    plan->micro_batch_samples = samples;
    plan->schedule = schedule_find("1f1b");
    return plan;
}

/* The strategies of the point's layers that lowering accepts. */
static void find_strategies(struct galvatron_space *space)
{
    static const int zeros[] = {0, 2, 3};
    struct galvatron_point *point = &space->point;
    point->strategy_count = 0;
    for (int t = 1; t <= point->devices; t *= 2)
        for (int i = 0; i < 3; i++)
            for (int more = 0; more < 4; more++) {
                struct galvatron_strategy one = {t, point->devices / t, more & 1, zeros[i],
                                                 more >> 1};
                bool plain = t == 1 || one.batch == 1; /* one order of axes is enough */
                if ((plain && one.neighbours != (t > 1)) || (one.batch == 1 && one.zero > 0) ||
                    one.batch > space->plan->micro_batch_samples)
                    continue;
                set_block(space->plan, 1, &one);
                if (plan_check_block(space->plan, space->graph, 1, NULL) == 0)
                    point->strategies[point->strategy_count++] = one;
            }
}

/* Keep the best plan of the point if it is better than those before. */
static void take_better(struct galvatron_space *space)
{
    const struct galvatron_point *point = &space->point;
    int layers = point->problem->layers;
    int *strategies = xcalloc((size_t)layers, sizeof *strategies);
    double step_s = solve_point(point, strategies);
    if (step_s < space->best_s) {
        for (int i = 0; i < layers; i++)
            set_block(space->plan, 1 + i, &point->strategies[strategies[i]]);
        plan_destroy(space->best);
        space->best_s = step_s;
        space->best = plan_copy(space->plan);
        space->best->predicted.formula_s = step_s;
    }
    free(strategies);
}

static void try_point(struct galvatron_space *space)
{
    const struct galvatron_point *point = &space->point;
    int last = space->plan->block_count - 1;
    struct galvatron_strategy end = {point->tensor, point->devices / point->tensor,
                                     point->tensor > 1, 0, false};
    set_block(space->plan, 0, &end);
    set_block(space->plan, last, &end);
    if (end.batch > space->plan->micro_batch_samples ||
        plan_check_block(space->plan, space->graph, 0, NULL) < 0 ||
        plan_check_block(space->plan, space->graph, last, NULL) < 0 || point->strategy_count == 0)
        return;
    space->legal = true;
    take_better(space);
}

static void try_points(struct galvatron_space *space, int devices, int64_t batch)
{
    struct galvatron_point *point = &space->point;
    for (int stages = 1; stages <= devices && stages <= point->problem->layers; stages *= 2) {
        for (int64_t m = 1; m <= batch && m <= PLAN_MICRO_BATCHES_MAX; m++) {
            if (batch % m != 0)
                continue;
            point->devices = devices / stages;
            point->plan = space->plan = make_plan(point, stages, (int)m, batch / m);
            find_strategies(space);
            for (point->tensor = 1; point->tensor <= point->devices; point->tensor *= 2)
                try_point(space);
            plan_destroy(space->plan);
        }
    }
}

struct plan *galvatron_best(const struct galvatron_problem *problem, const struct graph *graph,
                            int devices, int64_t batch, struct error *err)
{
    struct galvatron_space space = {.point.problem = problem, .graph = graph, .best_s = INFINITY};
    if (galvatron_level(devices) < 0)
        error_set(err, -EINVAL, "Galvatron divides powers of two, and there are %d devices",
                  devices);
    else
        try_points(&space, devices, batch);
    if (galvatron_level(devices) >= 0 && !space.best)
        error_set(err, space.legal ? -ENOSPC : -EINVAL,
                  space.legal
                      ? "no plan of Galvatron's space on %d devices fits by its formula, or "
                        "the profile lacks what it takes"
                      : "no plan of Galvatron's space on %d devices is legal",
                  devices);
    return space.best;
}
