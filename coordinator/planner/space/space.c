/* space.c - enumerates the plans of the space from the outside in: points; what one block may
 * choose on a site, namely a role for every axis, zero and recomputation; and the plans of a point,
 * which are every division of the blocks among its stages with every strategy that they may have
 * there. */
#include "coordinator/planner/space/space.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A device gets at most this many shares of a micro-batch. */
#define WEIGHT_MAX 8
/* Sizes are multiplied so that there are no more axes than this. */
#define AXES_USED_MAX 4

/* Distinct roles in one block's vector. With few axes there can hardly be more; with many, more
 * than two make more vectors than they are worth. */
#define ROLES_MIXED_MAX 2

bool space_pinned(int64_t pin, int64_t value)
{
    return pin != 0 && pin != value;
}

int space_stage_devices(const struct space_point *point, int stage)
{
    int even = point->devices / point->stages, more = point->devices % point->stages;
    bool extra = point->extra == EXTRA_FIRST ? stage < more : stage >= point->stages - more;
    return even + (more > 0 && extra);
}

bool space_same_speed(const struct planner_request *request, int first, int count)
{
    for (int i = first + 1; i < first + count; i++)
        if (request->devices[i].profile != request->devices[first].profile)
            return false;
    return true;
}

/* Whether any stage has devices of different speeds. */
static bool is_mixed(const struct planner_request *request, const struct space_point *point)
{
    for (int i = 0, first = 0; i < point->stages; i++) {
        int count = space_stage_devices(point, i);
        if (!space_same_speed(request, first, count))
            return true;
        first += count;
    }
    return false;
}

struct point_list {
    struct space_point *items;
    size_t count, capacity;
    bool one_speed; /* all devices that points may use have the same speed */
};

static void add_point(struct point_list *list, const struct space_point *point)
{
    list->items = grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = *point;
}

/* Without a pipeline only one schedule is listed. */
static void add_schedules(const struct planner_request *request, struct point_list *list,
                          struct space_point point)
{
    const char *wanted = request->job->plan.schedule;
    for (int i = 0; schedules[i]; i++) {
        bool other = wanted ? strcmp(schedules[i]->name, wanted) != 0
                            : i > 0 && (point.stages == 1 || point.micro_batches == 1);
        point.schedule = schedules[i];
        if (other)
            continue;
        point.weighted = false;
        add_point(list, &point);
        point.weighted = true;
        if (!list->one_speed && is_mixed(request, &point))
            add_point(list, &point);
    }
}

static void add_divisions(const struct planner_request *request, struct point_list *list,
                          struct space_point point)
{
    bool even = point.devices % point.stages == 0;
    for (int extra = even ? EXTRA_NONE : EXTRA_FIRST; extra <= (even ? EXTRA_NONE : EXTRA_LAST);
         extra++) {
        point.extra = (enum space_extra)extra;
        add_schedules(request, list, point);
    }
}

static int layers_of(const struct planner_request *request)
{
    int layers = (int)request->graph->block_count - 2;
    return layers > 1 ? layers : 1;
}

static void add_devices(const struct planner_request *request, struct point_list *list, int devices,
                        bool even)
{
    const struct job_plan *plan = &request->job->plan;
    int64_t batch = request->job->train.global_batch;
    for (int stages = 1; stages <= devices && stages <= layers_of(request); stages++) {
        if (space_pinned(plan->pin.pp, stages) || (even && devices % stages != 0))
            continue;
        for (int64_t m = 1; m <= batch && m <= PLAN_MICRO_BATCHES_MAX; m++)
            if (batch % m == 0 && !space_pinned(plan->pin.micro_batches, m))
                add_divisions(request, list,
                              (struct space_point){.devices = devices,
                                                   .stages = stages,
                                                   .micro_batches = (int)m,
                                                   .samples = batch / m});
    }
}

struct space_point *space_points(const struct planner_request *request, int least, int most,
                                 size_t *count)
{
    struct point_list list = {.one_speed = space_same_speed(request, 0, most)};
    for (int devices = least; devices <= most; devices++)
        add_devices(request, &list, devices, false);
    *count = list.count;
    return list.items;
}

struct space_point *space_points_even(const struct planner_request *request, int least, int most,
                                      int step, size_t *count)
{
    struct point_list list = {.one_speed = space_same_speed(request, 0, most)};
    for (int devices = most; devices >= least; devices -= step)
        add_devices(request, &list, devices, true);
    *count = list.count;
    return list.items;
}

double space_points_most(const struct planner_request *request, int least, int most)
{
    const struct job_plan *plan = &request->job->plan;
    int64_t batch = request->job->train.global_batch, divisors = 0;
    for (int64_t m = 1; m <= batch && m <= PLAN_MICRO_BATCHES_MAX; m++)
        divisors += batch % m == 0;
    int stages = most < layers_of(request) ? most : layers_of(request), kinds = 0;
    while (schedules[kinds])
        kinds++;
    return (double)(most - least + 1) * (plan->pin.pp ? 1 : stages) * 2 * kinds *
           (double)(plan->pin.micro_batches ? 1 : divisors);
}

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

bool space_role_forbidden(const struct job_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->forbid.roles.count; i++)
        if (strcmp(plan->forbid.roles.items[i], name) == 0)
            return true;
    return false;
}

static int space_degree(const struct site *site, const struct strategy *strategy, const char *name)
{
    int product = 1;
    for (int axis = 0; axis < site->mesh.axes; axis++)
        if (strcmp(strategy->roles[axis]->name, name) == 0)
            product *= site->mesh.size[axis];
    return product;
}

static bool may_choose(const struct planner_request *request, const struct site *site,
                       const struct strategy *strategy, int64_t samples)
{
    const struct job_plan *plan = &request->job->plan;
    int batch = space_degree(site, strategy, "batch");
    int tensor =
        space_degree(site, strategy, "tensor") * space_degree(site, strategy, "tensor_seq");
    unsigned mixed = 0;
    for (int axis = 0; axis < site->mesh.axes; axis++) {
        int row = 0;
        while (roles[row] != strategy->roles[axis])
            row++;
        mixed |= 1u << row;
        if (space_role_forbidden(plan, strategy->roles[axis]->name))
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
        const struct node *node = &graph->nodes[n];
        const struct operation *operation = node->operation;
        struct signature signature = signature_make(node, strategy->roles, site->mesh.axes);
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
           may_choose(costs->request, site, strategy, samples) &&
           (strategy->zero == 0 || can_shard(costs, site, block, strategy)) &&
           costs_accepts(costs, site, block, strategy, samples, NULL);
}

struct strategy_list {
    struct strategy *items;
    size_t count, capacity;
    struct error *err; /* why lowering refused the last strategy that it refused */
};

static void add_strategy(struct strategy_list *list, const struct strategy *strategy)
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
            add_strategy(list, &strategy);
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
        if (may_choose(costs->request, site, strategy, samples) &&
            costs_accepts(costs, site, block, strategy, samples, list->err))
            add_strategy(list, strategy);
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

static void space_weigh(const struct planner_request *request, int first, int count, int *weights)
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
            space_weigh(costs->request, first, count, weights);
            mesh.weights = weights;
        }
        sites[i] = sites_add(&costs->sites, first, &mesh);
        first += count;
    }
    free(weights);
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

/* The strategies of a block on a stage. */
struct offer {
    struct strategy *items;
    size_t count;
};

/* State of a walk; strategies per stage and block are found once. */
struct walk {
    struct plan *plan;
    struct offer *offers; /* [stage * blocks + block] */
    bool (*found)(void *context, const struct plan *plan);
    void *context;
};

static void walk_init(struct walk *walk, struct costs *costs, const struct space_point *point)
{
    int blocks = (int)costs->request->graph->block_count;
    const struct site **sites = xcalloc((size_t)point->stages, sizeof *sites);
    space_sites(costs, point, sites);
    *walk = (struct walk){.plan = space_plan(costs, point)};
    walk->offers = xcalloc((size_t)point->stages * (size_t)blocks, sizeof *walk->offers);
    for (int i = 0; i < point->stages; i++)
        for (int b = 0; b < blocks; b++) {
            struct offer *offer = &walk->offers[i * blocks + b];
            offer->items =
                space_strategies(costs, sites[i], b, point->samples, &offer->count, NULL);
        }
    free(sites);
}

static void walk_finish(struct walk *walk)
{
    for (int i = 0; i < walk->plan->stage_count * walk->plan->block_count; i++)
        free(walk->offers[i].items);
    free(walk->offers);
    plan_destroy(walk->plan);
}

double space_count(struct costs *costs, const struct space_point *point)
{
    struct walk walk;
    int blocks = (int)costs->request->graph->block_count;
    /* number of ways to place the blocks before b on the stages so far */
    double *ways = xcalloc((size_t)blocks + 1, sizeof *ways);
    walk_init(&walk, costs, point);
    ways[0] = 1;
    for (int i = 0; i < point->stages; i++) {
        for (int b = blocks; b >= 0; b--) {
            double sum = 0, product = 1;
            for (int first = b - 1; first >= 0; first--) {
                product *= (double)walk.offers[i * blocks + first].count;
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

/* Continue with this block, which is the next one of this stage. */
static bool walk_on(struct walk *walk, int stage, int block)
{
    struct plan *plan = walk->plan;
    int left = plan->stage_count - 1 - stage;
    if (block == plan->block_count)
        return left > 0 || walk->found(walk->context, plan);
    const struct offer *offer = &walk->offers[stage * plan->block_count + block];
    bool last = left == 0 || block + 1 == plan->block_count;
    for (size_t i = 0; i < offer->count; i++) {
        memcpy(plan->blocks[block].roles, offer->items[i].roles, sizeof offer->items[i].roles);
        plan->blocks[block].zero = offer->items[i].zero;
        plan->blocks[block].recompute = offer->items[i].recompute;
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
