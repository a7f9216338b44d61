/* strategies.c - enumerates what one block may choose on a site: a role for every axis, zero and
 * recomputation. */
#include "coordinator/planner/space/space.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Distinct roles in one block's vector. With few axes there can hardly be more; with many, more
 * than two make more vectors than they are worth. */
#define ROLES_MIXED_MAX 2

/* Whether an axis is like the one before it, so that exchanging their roles makes no difference. */
static bool is_like(const struct planner_request *request, const struct site *site, int axis)
{
    int count = mesh_count(&site->mesh),
        inside = hosts_share(&request->devices[site->first], count), span = 1;
    for (int i = 0; i < axis; i++)
        span *= site->mesh.size[i];
    bool begins_outside = inside > 0 && span == inside;
    return site->mesh.size[axis] == site->mesh.size[axis - 1] && !begins_outside &&
           space_same_speed(request, site->first, count);
}

static bool role_forbidden(const struct job_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->forbid.roles.count; i++)
        if (strcmp(plan->forbid.roles.items[i], name) == 0)
            return true;
    return false;
}

static int degree(const struct site *site, const struct strategy *strategy, const char *name)
{
    int product = 1;
    for (int axis = 0; axis < site->mesh.axes; axis++)
        if (strcmp(strategy->roles[axis]->name, name) == 0)
            product *= site->mesh.size[axis];
    return product;
}

static bool allowed(const struct planner_request *request, const struct site *site,
                    const struct strategy *strategy, int64_t samples)
{
    const struct job_plan *plan = &request->job->plan;
    int batch = degree(site, strategy, "batch");
    int tensor = degree(site, strategy, "tensor") * degree(site, strategy, "tensor_seq");
    unsigned mixed = 0;
    for (int axis = 0; axis < site->mesh.axes; axis++) {
        int row = 0;
        while (roles[row] != strategy->roles[axis])
            row++;
        mixed |= 1u << row;
        if (role_forbidden(plan, strategy->roles[axis]->name))
            return false;
    }
    return !space_pinned(plan->pin.dp, batch) && !space_pinned(plan->pin.tp, tensor) &&
           batch <= samples && __builtin_popcount(mixed) <= ROLES_MIXED_MAX;
}

/* Whether the gradient of any of the block's weights is partial, so that there is something to
 * shard. */
static bool can_shard(const struct costs *costs, const struct site *site, int block,
                      const struct strategy *strategy)
{
    const struct graph *graph = costs->request->graph;
    const struct block *of = &graph->blocks[block];
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        const struct operation *operation = graph->nodes[n].operation;
        struct signature signature;
        if (signature_make(operation, strategy->roles, site->mesh.axes, &signature, NULL) < 0)
            return false;
        for (int i = operation->input_count; i < operation_output(operation); i++)
            if (signature.gradient[i].partial)
                return true;
    }
    return false;
}

bool space_allows(struct costs *costs, const struct site *site, int block,
                  const struct strategy *strategy, int64_t samples)
{
    const struct job_plan *plan = &costs->request->job->plan;
    return !(plan->forbid.zero >> strategy->zero & 1) &&
           !(plan->forbid.recompute >> strategy->recompute & 1) &&
           allowed(costs->request, site, strategy, samples) &&
           (strategy->zero == 0 || can_shard(costs, site, block, strategy)) &&
           costs_accepts(costs, site, block, strategy, samples, NULL);
}

struct strategy_list {
    struct strategy *items;
    size_t count, capacity;
    struct error *err; /* why lowering refused the last strategy that it refused */
};

static void add(struct strategy_list *list, const struct strategy *strategy)
{
    list->items = grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = *strategy;
}

static void add_choices(struct costs *costs, const struct site *site, int block,
                        struct strategy strategy, struct strategy_list *list)
{
    const struct job_plan *plan = &costs->request->job->plan;
    int most = can_shard(costs, site, block, &strategy) ? 3 : 0;
    for (int zero = 0; zero <= most; zero++) {
        for (int recompute = 0; recompute < RECOMPUTES; recompute++) {
            if (plan->forbid.zero >> zero & 1 || plan->forbid.recompute >> recompute & 1)
                continue;
            strategy.zero = zero;
            strategy.recompute = (enum recompute)recompute;
            add(list, &strategy);
        }
    }
}

/* In the order that like axes use. With many devices the wide ones are only tried on smaller stages
 * and in plans that are given. */
static const struct {
    const char *name;
    bool wide;
} offered[] = {
    {"tensor", false}, {"tensor_seq", false}, {"hidden", true},
    {"context", true}, {"ulysses", true},     {"batch", false},
};
#define OFFERED (int)(sizeof offered / sizeof *offered)

void space_roles(const struct costs *costs, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < OFFERED && costs->narrow && used < size; i++)
        if (!offered[i].wide)
            used +=
                (size_t)snprintf(text + used, size - used, used ? ", %s" : "%s", offered[i].name);
}

/* Fast axes are offered first to the roles that communicate most: on like axes roles are in this
 * order. The last, batch, communicates once per step. */
static void add_vectors(struct costs *costs, const struct site *site, int block, int64_t samples,
                        int axis, int least, struct strategy *strategy, struct strategy_list *list)
{
    if (axis == site->mesh.axes) {
        if (allowed(costs->request, site, strategy, samples) &&
            costs_accepts(costs, site, block, strategy, samples, list->err))
            add(list, strategy);
        return;
    }
    bool like = axis > 0 && is_like(costs->request, site, axis);
    for (int i = like ? least : 0; i < OFFERED; i++) {
        if (costs->narrow && offered[i].wide)
            continue;
        strategy->roles[axis] = role_find(offered[i].name);
        add_vectors(costs, site, block, samples, axis + 1, i, strategy, list);
    }
}

struct strategy *space_vectors(struct costs *costs, const struct site *site, int block,
                               int64_t samples, size_t *count, struct error *err)
{
    struct strategy_list list = {.err = err};
    struct strategy strategy = {0};
    add_vectors(costs, site, block, samples, 0, 0, &strategy, &list);
    *count = list.count;
    return list.items;
}

struct strategy *space_strategies(struct costs *costs, const struct site *site, int block,
                                  int64_t samples, size_t *count, struct error *err)
{
    struct strategy_list list = {0};
    size_t vector_count;
    struct strategy *vectors = space_vectors(costs, site, block, samples, &vector_count, err);
    for (size_t i = 0; i < vector_count; i++)
        add_choices(costs, site, block, vectors[i], &list);
    free(vectors);
    *count = list.count;
    return list.items;
}
