/* tensoropt.c - frontiers of memory and time over the graph of blocks: FT-LDP of TensorOpt (arXiv
 * 2004.10856), with our costs.
 *
 * A node is a block; its configurations are the layouts of its ends, and for each there is the
 * frontier of its strategies. An edge has a frontier for every pair of configurations: the cost of
 * joining two blocks, or the cost of a weight that the first and the last block share. Nodes
 * between two others are eliminated, and parallel edges merged, until a chain is left. A linear
 * dynamic program runs along the chain, and every point of the final frontier is unrolled by its
 * back-pointers and judged as a whole plan.
 *
 * Time is that of the whole step; memory is what adds up. Pipelines are outside this search.
 *
 * A cost frontier is a set of (time, memory) points none of which is worse than another in both.
 * Time and memory are additive, so frontiers can be added (product), merged (union), and reduced to
 * the points that are best in one of the two. Each point has a trace, which records the choices
 * made for the blocks that it includes. */
#include "common/base/memory.h"
#include "coordinator/planner/searches/searches.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 64

/* The origin of a point: the sum of two points, or one choice. */
struct cost_trace {
    /* block -1: the sum of traces left and right; otherwise right is the choice for the block */
    int left, right, block;
};

struct cost_point {
    double seconds; /* of the whole step */
    uint64_t bytes;
    /* traces; -1: no choice involved. right is used only until cost_frontier_seal(). */
    int left, right;
};

/* Initialize to zero; release with free(items). */
struct cost_frontier {
    struct cost_point *items; /* after reduction: bytes increase, seconds decrease */
    size_t count, capacity;
};

/* State shared by all frontiers of one search. */
struct cost_frontiers {
    uint64_t memory_bytes; /* points that need more are dropped */
    struct cost_trace *traces;
    size_t trace_count, trace_capacity;
};

/* Frees the traces; frontiers are released by their owners. */
static void cost_frontiers_finish(struct cost_frontiers *shared)
{
    free(shared->traces);
}

static int cost_frontiers_add_trace(struct cost_frontiers *shared, struct cost_trace trace)
{
    shared->traces =
        grow(shared->traces, shared->trace_count, &shared->trace_capacity, sizeof *shared->traces);
    shared->traces[shared->trace_count] = trace;
    return (int)shared->trace_count++;
}

/* The trace of one choice for a block; `choice` is an index that only the caller interprets. */
static int cost_frontiers_trace(struct cost_frontiers *shared, int block, int choice)
{
    return cost_frontiers_add_trace(shared, (struct cost_trace){-1, choice, block});
}

/* Set choices[block] for every block that the trace covers. */
static void cost_frontiers_unroll(const struct cost_frontiers *shared, int trace, int *choices)
{
    assert(shared->traces && (size_t)trace < shared->trace_count);
    const struct cost_trace *of = &shared->traces[trace];
    if (of->block >= 0) {
        choices[of->block] = of->right;
        return;
    }
    cost_frontiers_unroll(shared, of->left, choices);
    cost_frontiers_unroll(shared, of->right, choices);
}

static void cost_frontier_append_point(const struct cost_frontiers *shared,
                                       struct cost_frontier *frontier, struct cost_point point)
{
    if (point.bytes > shared->memory_bytes || !isfinite(point.seconds))
        return;
    frontier->items =
        grow(frontier->items, frontier->count, &frontier->capacity, sizeof *frontier->items);
    frontier->items[frontier->count++] = point;
}

/* Add a point, unless it exceeds the memory or takes infinite time. Does not reduce. trace -1: no
 * choice involved. */
static void cost_frontier_append(const struct cost_frontiers *shared,
                                 struct cost_frontier *frontier, double seconds, uint64_t bytes,
                                 int trace)
{
    cost_frontier_append_point(shared, frontier, (struct cost_point){seconds, bytes, trace, -1});
}

/* Add all points of another frontier. Does not reduce. */
static void cost_frontier_unite(const struct cost_frontiers *shared, struct cost_frontier *frontier,
                                const struct cost_frontier *other)
{
    for (size_t i = 0; i < other->count; i++)
        cost_frontier_append_point(shared, frontier, other->items[i]);
}

static int by_bytes(const void *first, const void *second)
{
    const struct cost_point *a = first, *b = second;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return a->left != b->left ? a->left - b->left : a->right - b->right;
}

/* Sort the points and drop the dominated ones. If too many remain, keep the fastest in each of
 * equal slices of the memory. */
static void cost_frontier_reduce(const struct cost_frontiers *shared,
                                 struct cost_frontier *frontier)
{
    size_t kept = 0;
    double part = (double)shared->memory_bytes / POINTS_MAX;
    if (frontier->count > 1)
        qsort(frontier->items, frontier->count, sizeof *frontier->items, by_bytes);
    for (size_t i = 0; i < frontier->count; i++)
        if (kept == 0 || frontier->items[i].seconds < frontier->items[kept - 1].seconds)
            frontier->items[kept++] = frontier->items[i];
    frontier->count = kept;
    if (kept <= POINTS_MAX)
        return;
    size_t last = 0;
    for (size_t i = 1; i < kept; i++) {
        bool same = (size_t)((double)frontier->items[i].bytes / part) ==
                    (size_t)((double)frontier->items[last].bytes / part);
        frontier->items[last += !same] = frontier->items[i];
    }
    frontier->count = last + 1;
}

/* Add to `out` the sum of every pair of points of a and b. Neither reduces nor makes traces:
 * cost_frontier_seal() must follow before `out` is used otherwise. */
static void cost_frontier_multiply(const struct cost_frontiers *shared,
                                   const struct cost_frontier *a, const struct cost_frontier *b,
                                   struct cost_frontier *out)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++)
            cost_frontier_append_point(
                shared, out,
                (struct cost_point){a->items[i].seconds + b->items[j].seconds,
                                    a->items[i].bytes + b->items[j].bytes, a->items[i].left,
                                    b->items[j].left});
}

/* Reduce, and combine the left and right traces of each remaining sum into one, kept in `left`. */
static void cost_frontier_seal(struct cost_frontiers *shared, struct cost_frontier *frontier)
{
    cost_frontier_reduce(shared, frontier);
    for (size_t i = 0; i < frontier->count; i++) {
        struct cost_point *point = &frontier->items[i];
        if (point->left >= 0 && point->right >= 0)
            point->left = cost_frontiers_add_trace(
                shared, (struct cost_trace){point->left, point->right, -1});
        else if (point->right >= 0)
            point->left = point->right;
        point->right = -1;
    }
}

/* cost_frontier_multiply() and cost_frontier_seal() into a new frontier; the caller frees its
 * items. */
static struct cost_frontier cost_frontier_product(struct cost_frontiers *shared,
                                                  const struct cost_frontier *a,
                                                  const struct cost_frontier *b)
{
    struct cost_frontier out = {0};
    cost_frontier_multiply(shared, a, b, &out);
    cost_frontier_seal(shared, &out);
    return out;
}

/* Replace `frontier` by its product with `other`. */
static void cost_frontier_add(struct cost_frontiers *shared, struct cost_frontier *frontier,
                              const struct cost_frontier *other)
{
    struct cost_frontier sum = cost_frontier_product(shared, frontier, other);
    free(frontier->items);
    *frontier = sum;
}

/* A block. */
struct ft_node {
    int configurations;
    struct cost_frontier *of;   /* per configuration */
    const struct choice **like; /* [configuration]: a choice that has it */
};

struct ft_edge {
    int from, to;
    struct cost_frontier *of; /* [configuration of from * configurations of to + that of to] */
};

struct ft {
    struct instance *instance;
    struct ft_node *nodes;
    struct ft_edge *edges;
    size_t edge_count, edge_capacity;
    struct cost_frontiers shared;
};

/* Whether two choices have the same configuration. For the first block, this includes everything
 * that the cost of a block sharing its weight depends on. */
static bool same_configuration(const struct ft *ft, int block, const struct choice *a,
                               const struct choice *b)
{
    const struct strategy *x = &a->strategy, *y = &b->strategy;
    bool owns = ft->instance->costs->model.tied && block == 0;
    return a->entry == b->entry && a->exit == b->exit &&
           (!owns || (memcmp(x->roles, y->roles, sizeof x->roles) == 0 && x->zero == y->zero));
}

static int find_configuration(const struct ft *ft, int block, const struct choice *choice)
{
    const struct ft_node *node = &ft->nodes[block];
    int c = 0;
    while (c < node->configurations && !same_configuration(ft, block, node->like[c], choice))
        c++;
    return c;
}

/* trace -1: no choice is involved. */
static void ft_append_cost(struct ft *ft, struct cost_frontier *frontier,
                           const struct part_cost *cost, int trace)
{
    cost_frontier_append(&ft->shared, frontier, sweep_seconds(ft->instance, cost),
                         sweep_bytes(ft->instance, 0, cost), trace);
}

/* shares: the block uses another's weight, so its cost, and with it its strategy, is left to the
 * edge from the owner. */
static void ft_make_node(struct ft *ft, int block, bool shares)
{
    const struct choices *choices = instance_choices(ft->instance, 0, block);
    struct ft_node *node = &ft->nodes[block];
    node->of = xcalloc(choices->count, sizeof *node->of);
    node->like = xcalloc(choices->count, sizeof *node->like);
    for (size_t i = 0; i < choices->count; i++) {
        const struct choice *choice = &choices->items[i];
        int c = find_configuration(ft, block, choice);
        if (c == node->configurations)
            node->like[node->configurations++] = choice;
        if (shares)
            cost_frontier_append(&ft->shared, &node->of[c], 0, 0, -1);
        else
            ft_append_cost(ft, &node->of[c], &choice->cost,
                           cost_frontiers_trace(&ft->shared, block, (int)i));
    }
    for (int c = 0; c < node->configurations; c++)
        cost_frontier_reduce(&ft->shared, &node->of[c]);
}

/* A new edge with empty frontiers. */
static struct ft_edge *ft_add_edge(struct ft *ft, int from, int to)
{
    size_t cells = (size_t)ft->nodes[from].configurations * (size_t)ft->nodes[to].configurations;
    ft->edges = grow(ft->edges, ft->edge_count, &ft->edge_capacity, sizeof *ft->edges);
    struct ft_edge *edge = &ft->edges[ft->edge_count++];
    *edge = (struct ft_edge){from, to, xcalloc(cells, sizeof *edge->of)};
    return edge;
}

static void ft_make_joint(struct ft *ft, int from, int to)
{
    struct ft_edge *edge = ft_add_edge(ft, from, to);
    const struct ft_node *before = &ft->nodes[from], *after = &ft->nodes[to];
    for (int i = 0; i < before->configurations; i++)
        for (int j = 0; j < after->configurations; j++)
            ft_append_cost(
                ft, &edge->of[i * after->configurations + j],
                instance_joint(ft->instance, 0, from, before->like[i]->exit, after->like[j]->entry),
                -1);
}

/* The edge from the owner of a shared weight, the first block, to its other user, the last
 * block. */
static void ft_make_tie(struct ft *ft, int last)
{
    struct instance *instance = ft->instance;
    const struct choices *choices = instance_choices(instance, 0, last);
    const struct ft_node *owner = &ft->nodes[0], *sharer = &ft->nodes[last];
    struct ft_edge *edge = ft_add_edge(ft, 0, last);
    for (int i = 0; i < owner->configurations; i++) {
        struct tie tie = {instance->sites[0], &owner->like[i]->strategy};
        struct cost_frontier *row = &edge->of[(size_t)i * (size_t)sharer->configurations];
        for (size_t c = 0; c < choices->count; c++) {
            const struct choice *choice = &choices->items[c];
            struct part_cost cost;
            if (costs_block(instance->costs, instance->sites[0], last, &choice->strategy, &tie,
                            instance->point.samples, &cost, NULL) == 0)
                ft_append_cost(ft, &row[find_configuration(ft, last, choice)], &cost,
                               cost_frontiers_trace(&ft->shared, last, (int)c));
        }
        for (int j = 0; j < sharer->configurations; j++)
            cost_frontier_reduce(&ft->shared, &row[j]);
    }
}

static struct ft_edge *ft_find_edge(const struct ft *ft, int node, bool outgoing)
{
    for (size_t i = 0; i < ft->edge_count; i++)
        if ((outgoing ? ft->edges[i].from : ft->edges[i].to) == node)
            return &ft->edges[i];
    return NULL;
}

static void ft_drop_edge(struct ft *ft, struct ft_edge *edge)
{
    int cells = ft->nodes[edge->from].configurations * ft->nodes[edge->to].configurations;
    for (int i = 0; i < cells; i++)
        free(edge->of[i].items);
    free(edge->of);
    *edge = ft->edges[--ft->edge_count];
}

/* Replace a node between two others by an edge between these. */
static void ft_eliminate_node(struct ft *ft, int node)
{
    struct ft_edge into = *ft_find_edge(ft, node, false), out_of = *ft_find_edge(ft, node, true);
    int before = ft->nodes[into.from].configurations, own = ft->nodes[node].configurations,
        after = ft->nodes[out_of.to].configurations;
    struct ft_edge *edge = ft_add_edge(ft, into.from, out_of.to);
    for (int j = 0; j < after; j++) {
        for (int c = 0; c < own; c++) {
            struct cost_frontier half = cost_frontier_product(&ft->shared, &ft->nodes[node].of[c],
                                                              &out_of.of[c * after + j]);
            for (int i = 0; i < before; i++)
                cost_frontier_multiply(&ft->shared, &into.of[i * own + c], &half,
                                       &edge->of[i * after + j]);
            free(half.items);
        }
        for (int i = 0; i < before; i++)
            cost_frontier_seal(&ft->shared, &edge->of[i * after + j]);
    }
    ft_drop_edge(ft, ft_find_edge(ft, node, false));
    ft_drop_edge(ft, ft_find_edge(ft, node, true));
}

/* Add the second of two parallel edges to the first. */
static void ft_eliminate_edge(struct ft *ft, struct ft_edge *edge, struct ft_edge *other)
{
    int cells = ft->nodes[edge->from].configurations * ft->nodes[edge->to].configurations;
    for (int i = 0; i < cells; i++)
        cost_frontier_add(&ft->shared, &edge->of[i], &other->of[i]);
    ft_drop_edge(ft, other);
}

/* A shared weight closes a cycle: eliminate everything between its ends. */
static void ft_make_chain(struct ft *ft)
{
    if (!ft->instance->costs->model.tied)
        return;
    for (int b = ft->instance->blocks - 2; b > 0; b--)
        ft_eliminate_node(ft, b);
    assert(ft->edge_count == 2);
    ft_eliminate_edge(ft, &ft->edges[0], &ft->edges[1]);
}

/* Walk along the chain; returns the frontier of the whole graph. */
static struct cost_frontier ft_solve_chain(struct ft *ft)
{
    struct ft_node *node = &ft->nodes[0];
    struct cost_frontier all = {0};
    for (const struct ft_edge *edge = ft_find_edge(ft, 0, true); edge;
         edge = ft_find_edge(ft, edge->to, true)) {
        struct ft_node *next = &ft->nodes[edge->to];
        for (int j = 0; j < next->configurations; j++) {
            struct cost_frontier reached = {0};
            for (int i = 0; i < node->configurations; i++)
                cost_frontier_multiply(&ft->shared, &node->of[i],
                                       &edge->of[i * next->configurations + j], &reached);
            cost_frontier_seal(&ft->shared, &reached);
            cost_frontier_add(&ft->shared, &reached, &next->of[j]);
            free(next->of[j].items);
            next->of[j] = reached;
        }
        node = next;
    }
    for (int i = 0; i < node->configurations; i++)
        cost_frontier_unite(&ft->shared, &all, &node->of[i]);
    cost_frontier_reduce(&ft->shared, &all);
    return all;
}

/* Judge every point of the frontier as a whole plan; returns the best. */
static struct plan *ft_judge(const struct ft *ft, const struct cost_frontier *frontier)
{
    struct strategy *strategies = xcalloc((size_t)ft->instance->blocks, sizeof *strategies);
    int *choices = xcalloc((size_t)ft->instance->blocks, sizeof *choices);
    struct plan *best = NULL;
    double best_s = INFINITY;
    for (size_t i = 0; i < frontier->count; i++) {
        cost_frontiers_unroll(&ft->shared, frontier->items[i].left, choices);
        for (int b = 0; b < ft->instance->blocks; b++)
            strategies[b] = instance_choices(ft->instance, 0, b)->items[choices[b]].strategy;
        struct plan *plan = sweep_plan(ft->instance, &ft->instance->blocks, strategies);
        double step_s = sweep_judge(ft->instance, plan);
        if (step_s < best_s) {
            best_s = step_s;
            plan_destroy(best);
            best = plan;
        } else {
            plan_destroy(plan);
        }
    }
    free(choices);
    free(strategies);
    return best;
}

static void ft_finish(struct ft *ft)
{
    while (ft->edge_count > 0)
        ft_drop_edge(ft, &ft->edges[0]);
    for (int b = 0; b < ft->instance->blocks; b++) {
        for (int c = 0; c < ft->nodes[b].configurations; c++)
            free(ft->nodes[b].of[c].items);
        free(ft->nodes[b].of);
        free(ft->nodes[b].like);
    }
    free(ft->nodes);
    free(ft->edges);
    cost_frontiers_finish(&ft->shared);
}

static struct plan *ft_solve(struct instance *instance)
{
    struct ft ft = {.instance = instance, .shared.memory_bytes = instance_memory(instance, 0)};
    int last = instance->blocks - 1;
    bool tied = instance->costs->model.tied;
    ft.nodes = xcalloc((size_t)instance->blocks, sizeof *ft.nodes);
    for (int b = 0; b <= last; b++)
        ft_make_node(&ft, b, tied && b == last);
    for (int b = 0; b < last; b++)
        ft_make_joint(&ft, b, b + 1);
    if (tied)
        ft_make_tie(&ft, last);
    ft_make_chain(&ft);
    struct cost_frontier frontier = ft_solve_chain(&ft);
    struct plan *best = ft_judge(&ft, &frontier);
    free(frontier.items);
    ft_finish(&ft);
    return best;
}

static int tensoropt_search(const struct planner_request *request, struct planner_result *out,
                            struct error *err)
{
    static const struct sweep sweep = {.name = "tensoropt", .stages_max = 1, .solve = ft_solve};
    return sweep_run(request, &sweep, out, err);
}

const struct search search_tensoropt = {.name = "tensoropt", .run = tensoropt_search};
