/* redundancy.c - a tensor's slices are alike on all ranks of its stage that differ only along axes
 * which do not split it, and do not overlap on others. So tensors that are split along the same
 * axes are alone on the same ranks. */
#include "common/program/redundancy.h"

#include "common/base/memory.h"
#include "common/program/lower.h"

#include <stdlib.h>
#include <string.h>

static void find_units(struct redundancy *redundancy, const char *const *nodes, int ranks)
{
    redundancy->units = xcalloc((size_t)ranks, sizeof *redundancy->units);
    redundancy->single = true;
    for (int rank = 0; rank < ranks; rank++) {
        int before = rank > 0 ? redundancy->units[rank - 1] : 0; /* mostly its node is that one's */
        int unit = strcmp(nodes[before], nodes[rank]) == 0 ? before : 0;
        while (strcmp(nodes[unit], nodes[rank]) != 0)
            unit++;
        redundancy->units[rank] = unit;
        redundancy->single = redundancy->single && unit == 0;
    }
    for (int rank = 0; rank < ranks && redundancy->single; rank++)
        redundancy->units[rank] = rank;
}

/* Of a tensor that is split along these axes of its stage's mesh. */
static bool *find_alone(const struct redundancy *redundancy, int stage, unsigned split)
{
    const struct mesh *mesh = &redundancy->plan->stages[stage].mesh;
    const int *units = redundancy->units + plan_stage_rank(redundancy->plan, stage);
    int count = mesh_span(mesh, ~split), ranks = mesh_count(mesh);
    int *members = xcalloc((size_t)count, sizeof *members);
    bool *known = xcalloc((size_t)ranks, sizeof *known);
    bool *alone = xcalloc((size_t)ranks, sizeof *alone);
    for (int rank = 0; rank < ranks; rank++) {
        bool together = true;
        if (known[rank])
            continue;
        mesh_group(mesh, rank, ~split, members);
        for (int i = 0; i < count; i++)
            together = together && units[members[i]] == units[rank];
        for (int i = 0; i < count; i++) {
            known[members[i]] = true;
            alone[members[i]] = together;
        }
    }
    free(known);
    free(members);
    return alone;
}

static size_t index_of(const struct storage *storage)
{
    return (size_t)storage->stage << AXES_MAX | placement_split_axes(&storage->placement);
}

int redundancy_find(const struct graph *graph, const struct plan *plan, const char *const *nodes,
                    struct redundancy *out, struct error *err)
{
    *out = (struct redundancy){
        .plan = plan,
        .storage = xcalloc(graph->tensor_count, sizeof *out->storage),
        .alone = xcalloc((size_t)plan->stage_count << AXES_MAX, sizeof *out->alone),
    };
    find_units(out, nodes, plan_ranks(plan));
    int rc = lower_storage(graph, plan, out->storage, err);
    for (size_t t = 0; t < graph->tensor_count && rc == 0; t++) {
        const struct storage *storage = &out->storage[t];
        if (storage->stage < 0 || out->alone[index_of(storage)])
            continue;
        out->alone[index_of(storage)] =
            find_alone(out, storage->stage, placement_split_axes(&storage->placement));
    }
    return rc;
}

void redundancy_finish(struct redundancy *redundancy)
{
    for (size_t i = 0; redundancy->alone && i < (size_t)redundancy->plan->stage_count << AXES_MAX;
         i++)
        free(redundancy->alone[i]);
    free(redundancy->alone);
    free(redundancy->storage);
    free(redundancy->units);
    *redundancy = (struct redundancy){0};
}

bool redundancy_only_copy(const struct redundancy *redundancy, int rank, int tensor)
{
    const struct storage *storage = &redundancy->storage[tensor];
    if (storage->stage < 0)
        return false;
    int inside = rank - plan_stage_rank(redundancy->plan, storage->stage);
    const struct mesh *mesh = &redundancy->plan->stages[storage->stage].mesh;
    return inside >= 0 && inside < mesh_count(mesh) && redundancy->alone[index_of(storage)][inside];
}

bool redundancy_matters(const struct redundancy *redundancy, bool outlived)
{
    return plan_ranks(redundancy->plan) > 1 && !(redundancy->single && outlived);
}

int redundancy_neighbour(const struct redundancy *redundancy, int rank)
{
    int ranks = plan_ranks(redundancy->plan), next = (rank + 1) % ranks;
    while (redundancy->units[next] == redundancy->units[rank])
        next = (next + 1) % ranks;
    return next;
}
