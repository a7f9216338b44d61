/* tensoropt.c - frontiers of memory and time over the graph of blocks: FT-LDP of TensorOpt
 * (arXiv 2004.10856), on our costs.
 *
 * A node is a block; its configurations are the placements of its ends, and for each there is the
 * frontier of its strategies. An edge has a frontier for every pair of configurations: of what
 * joins two blocks, or of what a weight costs that the first and the last block share. Frontiers
 * are added (product), put together (union) and reduced to what is best in memory or time. Nodes
 * between two others are eliminated, and parallel edges, until a chain is left; along it goes a
 * linear dynamic programme, and every point of the last frontier is unrolled by its back-pointers
 * and judged as a whole plan.
 *
 * Time is that of the whole step; memory is what adds up. Of a frontier with too many points those
 * stay that are fastest in equal parts of the memory. Pipelines are not in this search. */
#include "common/base/memory.h"
#include "coordinator/planner/layer_dp.h"
#include "coordinator/planner/sweep.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 64

struct ft_point {
    double seconds;
    uint64_t bytes;
    int left, right; /* traces; -1: nothing was chosen there */
};

struct ft_frontier {
    struct ft_point *items; /* less and less seconds, more and more bytes */
    size_t count, capacity;
};

/* How a point came about: two others, or a choice. */
struct trace {
    int left, right, block; /* block -1: of two others; else right is its choice */
};

/* A block. */
struct ft_node {
    int configurations;
    struct ft_frontier *of;     /* per configuration */
    const struct choice **like; /* per configuration: a choice that has it */
};

struct ft_edge {
    int from, to;
    struct ft_frontier *of; /* [configuration of from * configurations of to + that of to] */
};

struct ft {
    struct instance *instance;
    struct ft_node *nodes;
    struct ft_edge *edges;
    size_t edge_count, edge_capacity;
    struct trace *traces;
    size_t trace_count, trace_capacity;
};

static int add_trace(struct ft *ft, struct trace trace)
{
    ft->traces = grow(ft->traces, ft->trace_count, &ft->trace_capacity, sizeof *ft->traces);
    ft->traces[ft->trace_count] = trace;
    return (int)ft->trace_count++;
}

static void add_point(const struct ft *ft, struct ft_frontier *frontier, struct ft_point point)
{
    if (point.bytes > instance_memory(ft->instance, 0) || !isfinite(point.seconds))
        return;
    frontier->items =
        grow(frontier->items, frontier->count, &frontier->capacity, sizeof *frontier->items);
    frontier->items[frontier->count++] = point;
}

static int by_bytes(const void *first, const void *second)
{
    const struct ft_point *a = first, *b = second;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return a->left != b->left ? a->left - b->left : a->right - b->right;
}

/* What is best in something; of too many the fastest in each part of the memory. */
static void reduce(const struct ft *ft, struct ft_frontier *frontier)
{
    size_t kept = 0;
    double part = (double)instance_memory(ft->instance, 0) / POINTS_MAX;
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

/* Adds to `out` every sum of a point of either; not reduced. */
static void multiply(const struct ft *ft, const struct ft_frontier *a, const struct ft_frontier *b,
                     struct ft_frontier *out)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++)
            add_point(ft, out,
                      (struct ft_point){a->items[i].seconds + b->items[j].seconds,
                                        a->items[i].bytes + b->items[j].bytes, a->items[i].left,
                                        b->items[j].left});
}

/* The sums that stay get traces: from now on a point's `left` is its whole past. */
static void seal(struct ft *ft, struct ft_frontier *frontier)
{
    reduce(ft, frontier);
    for (size_t i = 0; i < frontier->count; i++) {
        struct ft_point *point = &frontier->items[i];
        if (point->left >= 0 && point->right >= 0)
            point->left = add_trace(ft, (struct trace){point->left, point->right, -1});
        else if (point->right >= 0)
            point->left = point->right;
        point->right = -1;
    }
}

static struct ft_frontier product(struct ft *ft, const struct ft_frontier *a,
                                  const struct ft_frontier *b)
{
    struct ft_frontier out = {0};
    multiply(ft, a, b, &out);
    seal(ft, &out);
    return out;
}

/* Of the first block, on which a sharer's cost depends, what it depends on is told apart too. */
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

static struct ft_point point_of(const struct ft *ft, const struct part_cost *cost, int trace)
{
    return (struct ft_point){layer_seconds(ft->instance, cost), layer_bytes(ft->instance, 0, cost),
                             trace, -1};
}

static struct ft_point point_of_choice(struct ft *ft, int block, int index,
                                       const struct part_cost *cost)
{
    return point_of(ft, cost, add_trace(ft, (struct trace){-1, index, block}));
}

/* shares: what it costs, and so which strategy it has, is left to the edge from the owner. */
static void make_node(struct ft *ft, int block, bool shares)
{
    const struct choices *choices = instance_choices(ft->instance, 0, block);
    struct ft_node *node = &ft->nodes[block];
    node->of = xcalloc(choices->count, sizeof *node->of);
    node->like = xcalloc(choices->count, sizeof *node->like);
    for (size_t i = 0; i < choices->count; i++) {
        const struct choice *choice = &choices->items[i];
        static const struct ft_point nothing = {0, 0, -1, -1};
        int c = find_configuration(ft, block, choice);
        if (c == node->configurations)
            node->like[node->configurations++] = choice;
        add_point(ft, &node->of[c],
                  shares ? nothing : point_of_choice(ft, block, (int)i, &choice->cost));
    }
    for (int c = 0; c < node->configurations; c++)
        reduce(ft, &node->of[c]);
}

/* The place of an edge, made if there is none. */
static struct ft_edge *add_edge(struct ft *ft, int from, int to)
{
    size_t cells = (size_t)ft->nodes[from].configurations * (size_t)ft->nodes[to].configurations;
    ft->edges = grow(ft->edges, ft->edge_count, &ft->edge_capacity, sizeof *ft->edges);
    struct ft_edge *edge = &ft->edges[ft->edge_count++];
    *edge = (struct ft_edge){from, to, xcalloc(cells, sizeof *edge->of)};
    return edge;
}

static void free_edge(const struct ft *ft, struct ft_edge *edge)
{
    int cells = ft->nodes[edge->from].configurations * ft->nodes[edge->to].configurations;
    for (int i = 0; i < cells; i++)
        free(edge->of[i].items);
    free(edge->of);
}

static void make_joint(struct ft *ft, int from, int to)
{
    struct ft_edge *edge = add_edge(ft, from, to);
    const struct ft_node *before = &ft->nodes[from], *after = &ft->nodes[to];
    for (int i = 0; i < before->configurations; i++)
        for (int j = 0; j < after->configurations; j++)
            add_point(ft, &edge->of[i * after->configurations + j],
                      point_of(ft,
                               instance_joint(ft->instance, 0, from, before->like[i]->exit,
                                              after->like[j]->entry),
                               -1));
}

/* From the owner of a weight, the first block, to its other user, the last one. */
static void make_tie(struct ft *ft, int last)
{
    struct instance *instance = ft->instance;
    const struct choices *choices = instance_choices(instance, 0, last);
    const struct ft_node *owner = &ft->nodes[0], *sharer = &ft->nodes[last];
    struct ft_edge *edge = add_edge(ft, 0, last);
    for (int i = 0; i < owner->configurations; i++) {
        struct tie tie = {instance->sites[0], &owner->like[i]->strategy};
        struct ft_frontier *row = &edge->of[(size_t)i * (size_t)sharer->configurations];
        for (size_t c = 0; c < choices->count; c++) {
            const struct choice *choice = &choices->items[c];
            struct part_cost cost;
            if (costs_block(instance->costs, instance->sites[0], last, &choice->strategy, &tie,
                            instance->point.samples, &cost, NULL) == 0)
                add_point(ft, &row[find_configuration(ft, last, choice)],
                          point_of_choice(ft, last, (int)c, &cost));
        }
        for (int j = 0; j < sharer->configurations; j++)
            reduce(ft, &row[j]);
    }
}

static struct ft_edge *find_edge(const struct ft *ft, int node, bool outgoing)
{
    for (size_t i = 0; i < ft->edge_count; i++)
        if ((outgoing ? ft->edges[i].from : ft->edges[i].to) == node)
            return &ft->edges[i];
    return NULL;
}

static void drop_edge(struct ft *ft, struct ft_edge *edge)
{
    free_edge(ft, edge);
    *edge = ft->edges[--ft->edge_count];
}

/* A node between two others becomes an edge between these. */
static void eliminate_node(struct ft *ft, int node)
{
    struct ft_edge into = *find_edge(ft, node, false), out_of = *find_edge(ft, node, true);
    int before = ft->nodes[into.from].configurations, own = ft->nodes[node].configurations,
        after = ft->nodes[out_of.to].configurations;
    struct ft_edge *edge = add_edge(ft, into.from, out_of.to);
    for (int j = 0; j < after; j++) {
        for (int c = 0; c < own; c++) {
            struct ft_frontier half =
                product(ft, &ft->nodes[node].of[c], &out_of.of[c * after + j]);
            for (int i = 0; i < before; i++)
                multiply(ft, &into.of[i * own + c], &half, &edge->of[i * after + j]);
            free(half.items);
        }
        for (int i = 0; i < before; i++)
            seal(ft, &edge->of[i * after + j]);
    }
    drop_edge(ft, find_edge(ft, node, false));
    drop_edge(ft, find_edge(ft, node, true));
}

/* The second of two parallel edges is added to the first. */
static void eliminate_edge(struct ft *ft, struct ft_edge *edge, struct ft_edge *other)
{
    int cells = ft->nodes[edge->from].configurations * ft->nodes[edge->to].configurations;
    for (int i = 0; i < cells; i++) {
        struct ft_frontier sum = product(ft, &edge->of[i], &other->of[i]);
        free(edge->of[i].items);
        edge->of[i] = sum;
    }
    drop_edge(ft, other);
}

/* A shared weight closes a circle: all between its ends is eliminated. */
static void make_chain(struct ft *ft)
{
    if (!ft->instance->costs->model.tied)
        return;
    for (int b = ft->instance->blocks - 2; b > 0; b--)
        eliminate_node(ft, b);
    eliminate_edge(ft, &ft->edges[0], &ft->edges[1]);
}

/* Along the chain; the frontier of the whole graph. */
static struct ft_frontier solve_chain(struct ft *ft)
{
    struct ft_node *node = &ft->nodes[0];
    struct ft_frontier all = {0};
    static const struct ft_point nothing = {0, 0, -1, -1};
    for (const struct ft_edge *edge = find_edge(ft, 0, true); edge;
         edge = find_edge(ft, edge->to, true)) {
        struct ft_node *next = &ft->nodes[edge->to];
        for (int j = 0; j < next->configurations; j++) {
            struct ft_frontier reached = {0};
            for (int i = 0; i < node->configurations; i++)
                multiply(ft, &node->of[i], &edge->of[i * next->configurations + j], &reached);
            seal(ft, &reached);
            struct ft_frontier sum = product(ft, &reached, &next->of[j]);
            free(reached.items);
            free(next->of[j].items);
            next->of[j] = sum;
        }
        node = next;
    }
    struct ft_frontier start = {.count = 0};
    add_point(ft, &start, nothing);
    for (int i = 0; i < node->configurations; i++)
        multiply(ft, &start, &node->of[i], &all);
    seal(ft, &all);
    free(start.items);
    return all;
}

static void unroll(const struct ft *ft, int trace, struct strategy *out)
{
    assert(ft->traces && (size_t)trace < ft->trace_count);
    const struct trace *of = &ft->traces[trace];
    if (of->block >= 0) {
        out[of->block] = instance_choices(ft->instance, 0, of->block)->items[of->right].strategy;
        return;
    }
    unroll(ft, of->left, out);
    unroll(ft, of->right, out);
}

/* The best of the frontier as whole plans. */
static struct plan *judge(const struct ft *ft, const struct ft_frontier *frontier)
{
    struct strategy *strategies = xcalloc((size_t)ft->instance->blocks, sizeof *strategies);
    struct plan *best = NULL;
    double best_s = INFINITY;
    for (size_t i = 0; i < frontier->count; i++) {
        unroll(ft, frontier->items[i].left, strategies);
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
    free(strategies);
    return best;
}

static void finish(struct ft *ft)
{
    while (ft->edge_count > 0)
        drop_edge(ft, &ft->edges[0]);
    for (int b = 0; b < ft->instance->blocks; b++) {
        for (int c = 0; c < ft->nodes[b].configurations; c++)
            free(ft->nodes[b].of[c].items);
        free(ft->nodes[b].of);
        free(ft->nodes[b].like);
    }
    free(ft->nodes);
    free(ft->edges);
    free(ft->traces);
}

static struct plan *solve(struct instance *instance)
{
    struct ft ft = {.instance = instance};
    int last = instance->blocks - 1;
    bool tied = instance->costs->model.tied;
    ft.nodes = xcalloc((size_t)instance->blocks, sizeof *ft.nodes);
    for (int b = 0; b <= last; b++)
        make_node(&ft, b, tied && b == last);
    for (int b = 0; b < last; b++)
        make_joint(&ft, b, b + 1);
    if (tied)
        make_tie(&ft, last);
    make_chain(&ft);
    struct ft_frontier frontier = solve_chain(&ft);
    struct plan *best = judge(&ft, &frontier);
    free(frontier.items);
    finish(&ft);
    return best;
}

static int run(const struct planner_request *request, struct planner_result *out, struct error *err)
{
    static const struct sweep sweep = {.name = "tensoropt", .stages_max = 1, .solve = solve};
    return sweep_run(request, &sweep, out, err);
}

const struct search search_tensoropt = {.name = "tensoropt", .run = run};
