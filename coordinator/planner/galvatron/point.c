/* point.c - an exact solution: a step grows with every T_i and S_i of the formula, so a stage needs
 * only what is not dominated in T, S and memory, and then in T and S.
 *
 * The ways of a stage are sets of strategies for its equal layers, built up layer by layer. Then,
 * for every way of the first stage, the ways of the others are joined from the front: what counts
 * is the sum of T so far and the largest S_i - sum of T up to i. */
#include "coordinator/planner/galvatron/point.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>

/* Some layers of a stage with a strategy each, recorded in its trace. */
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

struct search {
    const struct galvatron_point *point;
    struct ways_of *ways;    /* per stage */
    struct prefixes *joined; /* per stage: of the stages up to it */
    struct trace *traces;
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
static void add_layer(struct search *search, const struct ways_of *fewer, int strategy,
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
        search->traces[search->trace_count++] = (struct trace){strategy, old->trace};
    }
}

/* The ways of a stage; those that are kept fit, so their memory no longer counts. */
static struct ways_of find_ways(struct search *search, int stage)
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
static void set_stage(struct search *search, int stage, const struct way *way)
{
    int block = search->point->plan->stages[stage].block_first;
    int layer = block > 0 ? block - 1 : 0;
    for (int trace = way->trace; trace >= 0; trace = search->traces[trace].before)
        search->best[layer++] = search->traces[trace].strategy;
}

/* Build all prefixes of this stage from those of the stage before. */
static void join_stage(struct search *search, int stage)
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
static void take_best(struct search *search)
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
static void join_stages(struct search *search, size_t first)
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

double galvatron_point_solve(const struct galvatron_point *point, int *strategies)
{
    int stages = point->plan->stage_count;
    struct search search = {.point = point, .best_s = INFINITY, .best = strategies};
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
