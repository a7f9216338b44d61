/* space.c - enumerates the plans of a point: its stages' sites and, on those, every division of the
 * blocks with every strategy that they may have. */
#include "coordinator/planner/space/space.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A device gets at most this many shares of a micro-batch. */
#define WEIGHT_MAX 8
/* Sizes are multiplied so that there are no more axes than this. */
#define AXES_USED_MAX 4

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
