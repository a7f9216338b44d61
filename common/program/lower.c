/* lower.c - runs the steps of lowering in order, and manages their shared state. */
#include "common/program/lower.h"

#include "common/base/memory.h"
#include "common/program/lowering.h"

#include <assert.h>
#include <stdlib.h>

void lowering_signatures(struct lowering *l)
{
    l->signatures = xrealloc(NULL, l->graph->node_count * sizeof *l->signatures);
    for (size_t n = 0; n < l->graph->node_count; n++) {
        const struct node *node = &l->graph->nodes[n];
        const struct plan_block *block = &l->plan->blocks[node->block];
        if (!part_concerns(l, node->block))
            continue;
        int axes = stage_mesh(l, block->stage)->axes;
        l->signatures[n] = l->ways ? ways_signature(l->ways, node, block->roles, axes)
                                   : signature_make(node, block->roles, axes);
    }
}

static void make_events(struct lowering *l)
{
    struct program *p = l->program;
    p->micro_batches = l->plan->micro_batches;
    p->event_count = 2 * p->micro_batches;
    p->events = xcalloc((size_t)p->event_count, sizeof *p->events);
    p->slots = schedule_events(l->plan->schedule, l->stage, l->plan->stage_count, p->micro_batches,
                               p->events);
}

static int build_events(struct lowering *l)
{
    if (l->part)
        return part_events(l);
    int rc = joints_forward(l);
    return rc < 0 ? rc : joints_backward(l);
}

int lowering_build(struct lowering *l)
{
    lowering_signatures(l);
    int rc = weights_find(l);
    if (rc == 0) {
        weights_buffers(l);
        rc = weights_travel(l);
    }
    if (rc == 0) {
        gradients_clear(l);
        rc = build_events(l);
    }
    if (rc == 0)
        rc = gradients_reduce(l);
    if (rc < 0)
        return rc;
    weights_update(l);
    arena_layout(l);
    if (!l->part) /* parts are priced, never executed */
        waits_find(l->program);
    return 0;
}

void lowering_init(struct lowering *l, const struct graph *graph, const struct plan *plan, int rank,
                   struct ways *ways, struct error *err)
{
    assert(rank >= 0 && rank < plan_ranks(plan));
    struct program *program = ways ? ways_program(ways) : xcalloc(1, sizeof *program);
    *l = (struct lowering){
        .graph = graph, .plan = plan, .program = program, .ways = ways, .err = err};
    l->stage = plan_rank_stage(plan, rank, &l->inside);
    l->mesh = stage_mesh(l, l->stage);
    l->homes = xcalloc(graph->tensor_count, sizeof *l->homes);
    for (size_t t = 0; t < graph->tensor_count; t++)
        l->homes[t].tensor = -1;
    /* Not cleared: they are large, written before they are read, and parts are lowered by the
     * thousand. */
    l->fetched = xrealloc(NULL, graph->node_count * sizeof *l->fetched);
    l->statistics = xrealloc(NULL, graph->node_count * sizeof *l->statistics);

    program->graph = graph;
    program->rank = rank;
    program->ranks = plan_ranks(plan);
    program->stage = l->stage;
    program->stage_first = rank - l->inside;
    program->stage_ranks = mesh_count(l->mesh);
    program->samples = plan->micro_batch_samples;
    program->slots = 1;
}

void lowering_finish(struct lowering *l)
{
    program_destroy(l->program);
    free(l->signatures);
    free(l->homes);
    free(l->fetched);
    free(l->statistics);
    free(l->routes);
    free(l->versions.items);
    free(l->arriving.items);
    free(l->shares);
    free(l->uses);
    free(l->buckets);
    free(l->storage);
    free(l->owner);
    free(l->room_bytes);
}

int lower(const struct graph *graph, const struct plan *plan, int rank, struct program **out,
          struct error *err)
{
    return lower_with(NULL, graph, plan, rank, out, err);
}

int lower_with(struct ways *ways, const struct graph *graph, const struct plan *plan, int rank,
               struct program **out, struct error *err)
{
    struct lowering l;
    int rc = plan_check(plan, graph, err);
    if (rc < 0)
        return rc;
    lowering_init(&l, graph, plan, rank, ways, err);
    make_events(&l);
    rc = lowering_build(&l);
    if (rc == 0) {
        *out = l.program;
        l.program = NULL;
    }
    lowering_finish(&l);
    return rc;
}

int lower_storage(const struct graph *graph, const struct plan *plan, struct storage *out,
                  struct error *err)
{
    struct lowering l;
    int rc = plan_check(plan, graph, err);
    if (rc < 0)
        return rc;
    lowering_init(&l, graph, plan, 0, NULL, err);
    lowering_signatures(&l);
    rc = weights_find(&l);
    for (size_t t = 0; t < graph->tensor_count && rc == 0; t++)
        out[t] = l.owner[t] < 0 ? (struct storage){.stage = -1}
                                : (struct storage){.stage = weights_owner(&l, (int)t)->stage,
                                                   .shape = tensor_shape(&l, (int)t),
                                                   .placement = l.storage[t]};
    lowering_finish(&l);
    return rc;
}
