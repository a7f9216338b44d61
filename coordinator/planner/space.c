/* space.c - enumeration: sites, strategies, and whole plans. */
#include "coordinator/planner/space.h"

#include "common/base/memory.h"
#include "coordinator/planner/hosts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A device is worth at most so many shares of a micro-batch. */
#define WEIGHT_MAX 8
/* More axes than these are not told apart: sizes are multiplied until they are so few. */
#define AXES_USED_MAX 4
/* Distinct roles in one block's vector: on few axes there can be no more, on many more than two
 * make more vectors than they are worth. */
#define ROLES_MIXED_MAX 2

static void add_factors(struct mesh *mesh, int number)
{
    for (int prime = 2; number > 1; prime++) {
        for (; number % prime == 0; number /= prime) {
            if (mesh->axes == AXES_USED_MAX)
                mesh->size[mesh->axes - 1] *= prime;
            else
                mesh->size[mesh->axes++] = prime;
        }
    }
}

/* Axes inside a host come first. */
static struct mesh make_mesh(const struct planner_request *request, int first, int count)
{
    struct mesh mesh = {0};
    int inside = hosts_share(&request->devices[first], count);
    if (inside > 0) {
        add_factors(&mesh, inside);
        add_factors(&mesh, count / inside);
    } else {
        add_factors(&mesh, count);
    }
    return mesh;
}

static void weigh(const struct planner_request *request, int first, int count, int *weights)
{
    double fastest = INFINITY;
    for (int i = 0; i < count; i++)
        fastest = fmin(fastest, request->devices[first + i].profile->seconds_per_flop);
    for (int i = 0; i < count; i++) {
        double speed = fastest / request->devices[first + i].profile->seconds_per_flop;
        int weight = (int)lround(WEIGHT_MAX * speed);
        weights[i] = isfinite(speed) && weight > 0 ? weight : 1;
    }
}

void space_sites(struct costs *costs, const struct space_point *point, const struct site **sites)
{
    int *weights = xcalloc((size_t)point->devices, sizeof *weights);
    for (int i = 0, first = 0; i < point->stages; i++) {
        int count = space_stage_devices(point, i);
        struct mesh mesh = make_mesh(costs->request, first, count);
        if (point->weighted && !space_same_speed(costs->request, first, count)) {
            weigh(costs->request, first, count, weights);
            mesh.weights = weights;
        }
        sites[i] = sites_add(&costs->sites, first, &mesh);
        first += count;
    }
    free(weights);
}

/* Is an axis the like of the one before: a role vector and its exchange are one? */
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

/* Is a gradient of the block's weights partial anywhere: is there something to shard? */
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
    struct error *err; /* why lowering refused the last that it refused */
};

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
            list->items = grow(list->items, list->count, &list->capacity, sizeof *list->items);
            list->items[list->count++] = strategy;
        }
    }
}

/* In the order in which like axes have them. With many devices the wide ones are left to smaller
 * stages and to plans that are given. */
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

/* Fast axes are offered to the roles that talk most first: of like axes the roles stand in this
 * order. The last, batch, talks once a step. */
static void add_vectors(struct costs *costs, const struct site *site, int block, int64_t samples,
                        int axis, int least, struct strategy *strategy, struct strategy_list *list)
{
    if (axis == site->mesh.axes) {
        if (allowed(costs->request, site, strategy, samples) &&
            costs_accepts(costs, site, block, strategy, samples, list->err))
            add_choices(costs, site, block, *strategy, list);
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

struct strategy *space_strategies(struct costs *costs, const struct site *site, int block,
                                  int64_t samples, size_t *count, struct error *err)
{
    struct strategy_list list = {.err = err};
    struct strategy strategy = {0};
    add_vectors(costs, site, block, samples, 0, 0, &strategy, &list);
    *count = list.count;
    return list.items;
}

struct plan *space_plan(struct costs *costs, const struct space_point *point)
{
    struct plan *plan = plan_create(point->stages, (int)costs->request->graph->block_count);
    const struct site **sites = xcalloc((size_t)point->stages, sizeof *sites);
    space_sites(costs, point, sites);
    for (int i = 0; i < point->stages; i++) {
        struct plan_stage *stage = &plan->stages[i];
        size_t count = (size_t)mesh_count(&sites[i]->mesh);
        stage->mesh = sites[i]->mesh;
        if (sites[i]->weights) {
            stage->weights = xcalloc(count, sizeof *stage->weights);
            memcpy(stage->weights, sites[i]->weights, count * sizeof *stage->weights);
            stage->mesh.weights = stage->weights;
        }
    }
    plan->micro_batches = point->micro_batches;
    plan->micro_batch_samples = point->samples;
    plan->schedule = point->schedule;
    plan->overlap = costs->request->job->plan.overlap;
    free(sites);
    return plan;
}

/* A walk: strategies per stage and block, found once. */
struct walk {
    struct costs *costs;
    struct plan *plan;
    struct strategy_list *lists; /* [stage * blocks + block] */
    bool (*found)(void *context, const struct plan *plan);
    void *context;
};

static void walk_init(struct walk *walk, struct costs *costs, const struct space_point *point)
{
    int blocks = (int)costs->request->graph->block_count;
    const struct site **sites = xcalloc((size_t)point->stages, sizeof *sites);
    space_sites(costs, point, sites);
    *walk = (struct walk){.costs = costs, .plan = space_plan(costs, point)};
    walk->lists = xcalloc((size_t)point->stages * (size_t)blocks, sizeof *walk->lists);
    for (int i = 0; i < point->stages; i++)
        for (int b = 0; b < blocks; b++) {
            struct strategy_list *list = &walk->lists[i * blocks + b];
            list->items = space_strategies(costs, sites[i], b, point->samples, &list->count, NULL);
        }
    free(sites);
}

static void walk_finish(struct walk *walk)
{
    for (int i = 0; i < walk->plan->stage_count * walk->plan->block_count; i++)
        free(walk->lists[i].items);
    free(walk->lists);
    plan_destroy(walk->plan);
}

double space_count(struct costs *costs, const struct space_point *point)
{
    struct walk walk;
    int blocks = (int)costs->request->graph->block_count;
    double *ways = xcalloc((size_t)blocks + 1, sizeof *ways); /* of blocks before b, so far */
    walk_init(&walk, costs, point);
    ways[0] = 1;
    for (int i = 0; i < point->stages; i++) {
        for (int b = blocks; b >= 0; b--) {
            double sum = 0, product = 1;
            for (int first = b - 1; first >= 0; first--) {
                product *= (double)walk.lists[i * blocks + first].count;
                sum += ways[first] * product;
            }
            ways[b] = sum;
        }
    }
    double count = ways[blocks];
    free(ways);
    walk_finish(&walk);
    return count;
}

/* From this block on, which is the next of this stage's. */
static bool walk_on(struct walk *walk, int stage, int block)
{
    struct plan *plan = walk->plan;
    int left = plan->stage_count - 1 - stage;
    if (block == plan->block_count)
        return left > 0 || walk->found(walk->context, plan);
    const struct strategy_list *list = &walk->lists[stage * plan->block_count + block];
    bool last = left == 0 || block + 1 == plan->block_count;
    for (size_t i = 0; i < list->count; i++) {
        memcpy(plan->blocks[block].roles, list->items[i].roles, sizeof list->items[i].roles);
        plan->blocks[block].zero = list->items[i].zero;
        plan->blocks[block].recompute = list->items[i].recompute;
        plan->blocks[block].stage = stage;
        plan->stages[stage].block_count = block + 1 - plan->stages[stage].block_first;
        if (!last) {
            plan->stages[stage + 1].block_first = block + 1;
            if (!walk_on(walk, stage + 1, block + 1))
                return false;
            plan->stages[stage].block_count = block + 1 - plan->stages[stage].block_first;
        }
        if (!walk_on(walk, stage, block + 1))
            return false;
    }
    return true;
}

void space_walk(struct costs *costs, const struct space_point *point,
                bool (*found)(void *context, const struct plan *plan), void *context)
{
    struct walk walk;
    walk_init(&walk, costs, point);
    walk.found = found;
    walk.context = context;
    walk_on(&walk, 0, 0);
    walk_finish(&walk);
}
