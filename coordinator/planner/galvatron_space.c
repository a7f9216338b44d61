/* galvatron_space.c - exact: a step grows with every T_i and S_i of the formula, so stages need
 * only what is best in T, S or memory, and then in T or S.
 *
 * A point is a number of stages, of micro-batches and a degree of the embedding. A stage's ways are
 * sets of strategies for its equal layers, filled up layer by layer. Then, for every way of the
 * first stage, the ways of the others are joined from the front: what counts is the sum of T so far
 * and the largest S_i - sum of T up to i. */
#include "coordinator/planner/galvatron_space.h"

#include "common/base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STRATEGIES_MAX 128

/* Some layers of a stage, each with a strategy: those of its trace. */
struct way {
    struct galvatron_cost cost;
    int trace; /* -1: no layers yet */
};

struct ways_of {
    struct way *items;
    size_t count, capacity;
};

struct trace {
    int strategy, before;
};

/* Stages up to one. */
struct prefix {
    double sum, late; /* of T; of S_i - sum of T up to i */
    int way, before;  /* of its last stage; among the prefixes of the stage before */
};

struct prefixes {
    struct prefix *items;
    size_t count, capacity;
};

struct space {
    const struct galvatron_problem *problem;
    const struct graph *graph;
    struct plan *plan; /* of this point: roles, stages and sizes */
    struct galvatron_strategy strategies[STRATEGIES_MAX];
    int strategy_count;
    int devices, tensor; /* of a stage; of the embedding */
    struct trace *traces;
    size_t trace_count, trace_capacity;
    double best_s;
    struct plan *best;
    bool legal;
};

/* Axes: tensor, batch, or the other way round, fastest first; two of them at most. */
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

static struct plan *make_plan(const struct space *space, int stages, int micro_batches,
                              int64_t samples)
{
    struct plan *plan = plan_create(stages, space->problem->layers + 2);
    divide(plan, space->problem->layers);
    for (int i = 0; i < stages; i++)
        for (int left = space->devices; left > 1; left /= 2)
            plan->stages[i].mesh.size[plan->stages[i].mesh.axes++] = 2;
    plan->micro_batches = micro_batches;
    plan->micro_batch_samples = samples;
    plan->schedule = schedule_find("1f1b");
    return plan;
}

/* Those that lowering accepts, for the layers of the point. */
static void find_strategies(struct space *space)
{
    static const int zeros[] = {0, 2, 3};
    space->strategy_count = 0;
    for (int t = 1; t <= space->devices; t *= 2)
        for (int i = 0; i < 3; i++)
            for (int more = 0; more < 4; more++) {
                struct galvatron_strategy one = {t, space->devices / t, more & 1, zeros[i],
                                                 more >> 1};
                bool plain = t == 1 || one.batch == 1; /* one order of axes is enough */
                if ((plain && one.neighbours != (t > 1)) || (one.batch == 1 && one.zero > 0) ||
                    one.batch > space->plan->micro_batch_samples)
                    continue;
                set_block(space->plan, 1, &one);
                if (plan_check_block(space->plan, space->graph, 1, NULL) == 0)
                    space->strategies[space->strategy_count++] = one;
            }
}

static bool is_worse(const struct galvatron_cost *a, const struct galvatron_cost *b)
{
    return a->seconds >= b->seconds && a->reduce_s >= b->reduce_s && a->bytes >= b->bytes;
}

/* false: another is nowhere worse. */
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

/* Every way of `fewer` with one layer more. */
static void add_layer(struct space *space, const struct ways_of *fewer, int strategy,
                      const struct galvatron_cost *layer, struct ways_of *ways)
{
    for (size_t i = 0; i < fewer->count; i++) {
        const struct way *old = &fewer->items[i];
        struct way way = {{old->cost.seconds + layer->seconds, old->cost.reduce_s + layer->reduce_s,
                           old->cost.bytes + layer->bytes},
                          (int)space->trace_count};
        if (way.cost.bytes > galvatron_memory(space->problem) || !add_way(ways, way))
            continue;
        space->traces =
            grow(space->traces, space->trace_count, &space->trace_capacity, sizeof *space->traces);
        space->traces[space->trace_count++] = (struct trace){strategy, old->trace};
    }
}

/* The ways of a stage; what is left of memory no longer counts. */
static struct ways_of find_ways(struct space *space, int stage)
{
    const struct plan *plan = space->plan;
    int stages = plan->stage_count, m = plan->micro_batches;
    int layers = plan->stages[stage].block_count - (stage == 0) - (stage == stages - 1);
    int slots = stages - stage < m ? stages - stage : m;
    struct ways_of *by_layers = xcalloc((size_t)layers + 1, sizeof *by_layers), best = {0};
    struct galvatron_cost cost;
    if (galvatron_ends(space->problem, space->devices, space->tensor, 0, stage, stages,
                       plan->micro_batch_samples, slots, &cost, NULL) == 0)
        add_way(&by_layers[0], (struct way){cost, -1});
    for (int s = 0; s < space->strategy_count; s++) {
        if (galvatron_layer(space->problem, &space->strategies[s], stages,
                            plan->micro_batch_samples, slots, &cost, NULL) < 0)
            continue;
        for (int l = 1; l <= layers; l++)
            add_layer(space, &by_layers[l - 1], s, &cost, &by_layers[l]);
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

/* The layers of a stage get the strategies of the way. */
static void set_stage(const struct space *space, int stage, const struct way *way)
{
    const struct plan_stage *of = &space->plan->stages[stage];
    int b = of->block_first > 0 ? of->block_first : 1;
    for (int trace = way->trace; trace >= 0; trace = space->traces[trace].before)
        set_block(space->plan, b++, &space->strategies[space->traces[trace].strategy]);
}

/* With this way of the first stage; the others' are in `ways`, `lists` is for prefixes. */
static void join_stages(struct space *space, const struct ways_of *ways, size_t first,
                        struct prefixes *lists)
{
    int stages = space->plan->stage_count;
    const struct galvatron_cost *head = &ways[0].items[first].cost;
    struct galvatron_cost *costs = xcalloc((size_t)stages, sizeof *costs);
    lists[0].count = 0;
    add_prefix(&lists[0], (struct prefix){head->seconds, fmax(0, head->reduce_s - head->seconds),
                                          (int)first, -1});
    for (int i = 1; i < stages; i++) {
        lists[i].count = 0;
        for (size_t p = 0; p < lists[i - 1].count; p++)
            for (size_t w = 0; w < ways[i].count; w++) {
                const struct prefix *old = &lists[i - 1].items[p];
                const struct galvatron_cost *cost = &ways[i].items[w].cost;
                double sum = old->sum + cost->seconds;
                struct prefix prefix = {sum, fmax(old->late, cost->reduce_s - sum), (int)w, (int)p};
                if (i < stages - 1) {
                    add_prefix(&lists[i], prefix);
                    continue;
                }
                /* The last stage's own time counts besides. */
                lists[i].items =
                    grow(lists[i].items, lists[i].count, &lists[i].capacity, sizeof prefix);
                lists[i].items[lists[i].count++] = prefix;
            }
    }
    for (size_t p = 0; p < lists[stages - 1].count; p++) {
        for (int i = stages - 1, at = (int)p; i >= 0; at = lists[i--].items[at].before)
            costs[i] = ways[i].items[lists[i].items[at].way].cost;
        double step_s = galvatron_step(costs, stages, space->plan->micro_batches);
        if (step_s >= space->best_s)
            continue;
        space->best_s = step_s;
        for (int i = stages - 1, at = (int)p; i >= 0; at = lists[i--].items[at].before)
            set_stage(space, i, &ways[i].items[lists[i].items[at].way]);
        plan_destroy(space->best);
        space->best = plan_copy(space->plan);
        space->best->predicted.formula_s = step_s;
    }
    free(costs);
}

static void solve_point(struct space *space)
{
    int stages = space->plan->stage_count, last = space->plan->block_count - 1;
    struct galvatron_strategy end = {space->tensor, space->devices / space->tensor,
                                     space->tensor > 1, 0, false};
    set_block(space->plan, 0, &end);
    set_block(space->plan, last, &end);
    if (end.batch > space->plan->micro_batch_samples ||
        plan_check_block(space->plan, space->graph, 0, NULL) < 0 ||
        plan_check_block(space->plan, space->graph, last, NULL) < 0 || space->strategy_count == 0)
        return;
    space->legal = true;
    space->trace_count = 0;
    struct ways_of *ways = xcalloc((size_t)stages, sizeof *ways);
    struct prefixes *lists = xcalloc((size_t)stages, sizeof *lists);
    for (int i = 0; i < stages; i++)
        ways[i] = find_ways(space, i);
    for (size_t first = 0; first < ways[0].count; first++)
        join_stages(space, ways, first, lists);
    for (int i = 0; i < stages; i++) {
        free(ways[i].items);
        free(lists[i].items);
    }
    free(ways);
    free(lists);
}

static void solve_points(struct space *space, int devices, int64_t batch)
{
    for (int stages = 1; stages <= devices && stages <= space->problem->layers; stages *= 2) {
        for (int64_t m = 1; m <= batch && m <= PLAN_MICRO_BATCHES_MAX; m++) {
            if (batch % m != 0)
                continue;
            space->devices = devices / stages;
            space->plan = make_plan(space, stages, (int)m, batch / m);
            find_strategies(space);
            for (space->tensor = 1; space->tensor <= space->devices; space->tensor *= 2)
                solve_point(space);
            plan_destroy(space->plan);
        }
    }
}

struct plan *galvatron_best(const struct galvatron_problem *problem, const struct graph *graph,
                            int devices, int64_t batch, struct error *err)
{
    struct space space = {.problem = problem, .graph = graph, .best_s = INFINITY};
    if (galvatron_level(devices) < 0)
        error_set(err, -EINVAL, "Galvatron divides powers of two, and there are %d devices",
                  devices);
    else
        solve_points(&space, devices, batch);
    if (galvatron_level(devices) >= 0 && !space.best)
        error_set(err, space.legal ? -ENOSPC : -EINVAL,
                  space.legal
                      ? "no plan of Galvatron's space on %d devices fits by its formula, or "
                        "the profile lacks what it takes"
                      : "no plan of Galvatron's space on %d devices is legal",
                  devices);
    free(space.traces);
    return space.best;
}
