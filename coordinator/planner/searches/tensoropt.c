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
 * Time is that of the whole step; memory is what adds up. Pipelines are outside this search. */
#include "common/base/memory.h"
#include "coordinator/planner/cost_frontier.h"
#include "coordinator/planner/layer_dp.h"
#include "coordinator/planner/sweep.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static void append_cost(struct ft *ft, struct cost_frontier *frontier, const struct part_cost *cost,
                        int trace)
{
    cost_frontier_append(&ft->shared, frontier, layer_seconds(ft->instance, cost),
                         layer_bytes(ft->instance, 0, cost), trace);
}

/* shares: the block uses another's weight, so its cost, and with it its strategy, is left to the
 * edge from the owner. */
static void make_node(struct ft *ft, int block, bool shares)
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
            append_cost(ft, &node->of[c], &choice->cost,
                        cost_frontiers_trace(&ft->shared, block, (int)i));
    }
    for (int c = 0; c < node->configurations; c++)
        cost_frontier_reduce(&ft->shared, &node->of[c]);
}

/* A new edge with empty frontiers. */
static struct ft_edge *add_edge(struct ft *ft, int from, int to)
{
    size_t cells = (size_t)ft->nodes[from].configurations * (size_t)ft->nodes[to].configurations;
    ft->edges = grow(ft->edges, ft->edge_count, &ft->edge_capacity, sizeof *ft->edges);
    struct ft_edge *edge = &ft->edges[ft->edge_count++];
    *edge = (struct ft_edge){from, to, xcalloc(cells, sizeof *edge->of)};
    return edge;
}

static void make_joint(struct ft *ft, int from, int to)
{
    struct ft_edge *edge = add_edge(ft, from, to);
    const struct ft_node *before = &ft->nodes[from], *after = &ft->nodes[to];
    for (int i = 0; i < before->configurations; i++)
        for (int j = 0; j < after->configurations; j++)
            append_cost(
                ft, &edge->of[i * after->configurations + j],
                instance_joint(ft->instance, 0, from, before->like[i]->exit, after->like[j]->entry),
                -1);
}

/* The edge from the owner of a shared weight, the first block, to its other user, the last
 * block. */
static void make_tie(struct ft *ft, int last)
{
    struct instance *instance = ft->instance;
    const struct choices *choices = instance_choices(instance, 0, last);
    const struct ft_node *owner = &ft->nodes[0], *sharer = &ft->nodes[last];
    struct ft_edge *edge = add_edge(ft, 0, last);
    for (int i = 0; i < owner->configurations; i++) {
        struct tie tie = {instance->sites[0], &owner->like[i]->strategy};
        struct cost_frontier *row = &edge->of[(size_t)i * (size_t)sharer->configurations];
        for (size_t c = 0; c < choices->count; c++) {
            const struct choice *choice = &choices->items[c];
            struct part_cost cost;
            if (costs_block(instance->costs, instance->sites[0], last, &choice->strategy, &tie,
                            instance->point.samples, &cost, NULL) == 0)
                append_cost(ft, &row[find_configuration(ft, last, choice)], &cost,
                            cost_frontiers_trace(&ft->shared, last, (int)c));
        }
        for (int j = 0; j < sharer->configurations; j++)
            cost_frontier_reduce(&ft->shared, &row[j]);
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
    int cells = ft->nodes[edge->from].configurations * ft->nodes[edge->to].configurations;
    for (int i = 0; i < cells; i++)
        free(edge->of[i].items);
    free(edge->of);
    *edge = ft->edges[--ft->edge_count];
}

/* Replace a node between two others by an edge between these. */
static void eliminate_node(struct ft *ft, int node)
{
    struct ft_edge into = *find_edge(ft, node, false), out_of = *find_edge(ft, node, true);
    int before = ft->nodes[into.from].configurations, own = ft->nodes[node].configurations,
        after = ft->nodes[out_of.to].configurations;
    struct ft_edge *edge = add_edge(ft, into.from, out_of.to);
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
    drop_edge(ft, find_edge(ft, node, false));
    drop_edge(ft, find_edge(ft, node, true));
}

/* Add the second of two parallel edges to the first. */
static void eliminate_edge(struct ft *ft, struct ft_edge *edge, struct ft_edge *other)
{
    int cells = ft->nodes[edge->from].configurations * ft->nodes[edge->to].configurations;
    for (int i = 0; i < cells; i++)
        cost_frontier_add(&ft->shared, &edge->of[i], &other->of[i]);
    drop_edge(ft, other);
}

/* A shared weight closes a cycle: eliminate everything between its ends. */
static void make_chain(struct ft *ft)
{
    if (!ft->instance->costs->model.tied)
        return;
    for (int b = ft->instance->blocks - 2; b > 0; b--)
        eliminate_node(ft, b);
    assert(ft->edge_count == 2);
    eliminate_edge(ft, &ft->edges[0], &ft->edges[1]);
}

/* Walk along the chain; returns the frontier of the whole graph. */
static struct cost_frontier solve_chain(struct ft *ft)
{
    struct ft_node *node = &ft->nodes[0];
    struct cost_frontier all = {0};
    for (const struct ft_edge *edge = find_edge(ft, 0, true); edge;
         edge = find_edge(ft, edge->to, true)) {
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
static struct plan *judge(const struct ft *ft, const struct cost_frontier *frontier)
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
    cost_frontiers_finish(&ft->shared);
}

static struct plan *solve(struct instance *instance)
{
    struct ft ft = {.instance = instance, .shared.memory_bytes = instance_memory(instance, 0)};
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
    struct cost_frontier frontier = solve_chain(&ft);
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
