/* bounds.c - work that can be shared, and what every device has to do itself.
 *
 * However a stage's devices divide its blocks, each of them launches every kernel, which takes a
 * fixed time; the rest of a block's time, and the optimizer's, one of c devices has a c-th of at
 * least. Of a run of equal blocks some stage has its share, rounded up. */
#include "coordinator/planner/bounds.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>

/* One device, all blocks: a micro-batch's forward and backward, fixed and otherwise, and what
 * follows once a step. */
struct alone {
    int64_t samples;
    double fixed_s, shared_s, once_s;
    double state_bytes, tied_bytes;
    double saved_bytes, room_bytes; /* of one micro-batch; of the largest block's room */
    /* The longest run of equal blocks: each of them. */
    int run;
    double run_fixed_s, run_shared_s;
};

void bounds_init(struct bounds *bounds, struct costs *costs)
{
    *bounds = (struct bounds){.costs = costs};
}

void bounds_finish(struct bounds *bounds)
{
    free(bounds->items);
}

static void add_block(struct alone *alone, const struct part_cost *cost, int run)
{
    double seconds = cost->forward_s + cost->backward_s;
    alone->fixed_s += cost->fixed_s;
    alone->shared_s += seconds - cost->fixed_s;
    alone->once_s += cost->once_s;
    alone->state_bytes += (double)cost->state_bytes;
    if (run > alone->run) {
        alone->run = run;
        alone->run_fixed_s = cost->fixed_s;
        alone->run_shared_s = seconds - cost->fixed_s;
    }
}

/* The least that recomputation leaves of a block between forward and backward, and of its room;
 * and what the joint before it keeps for it. */
static void add_saved(struct alone *alone, struct costs *costs, const struct site *site, int block)
{
    const struct job_plan *plan = &costs->request->job->plan;
    struct strategy strategy = {0}, plain = {0};
    struct part_cost cost;
    double saved = INFINITY, room = INFINITY;
    for (int recompute = 0; recompute < RECOMPUTES; recompute++) {
        strategy.recompute = (enum recompute)recompute;
        if (plan->forbid.recompute >> recompute & 1 ||
            costs_block(costs, site, block, &strategy, NULL, alone->samples, &cost, NULL) < 0)
            continue;
        saved = fmin(saved, (double)cost.saved_bytes);
        room = fmin(room, fmax((double)cost.other_bytes, (double)cost.forward_bytes));
    }
    alone->saved_bytes += isfinite(saved) ? saved : 0;
    alone->room_bytes = fmax(alone->room_bytes, isfinite(room) ? room : 0);
    if (block > 0 &&
        costs_joint(costs, site, block - 1, &plain, &plain, alone->samples, &cost, NULL) == 0)
        alone->saved_bytes += (double)cost.saved_bytes;
}

static struct alone find_alone(struct costs *costs, int device, int64_t samples)
{
    struct mesh mesh = {0};
    struct strategy strategy = {0};
    struct alone alone = {.samples = samples};
    const struct site *site = sites_add(&costs->sites, device, &mesh);
    const int *place = costs->model.place;
    int blocks = (int)costs->request->graph->block_count;
    for (int b = 0, run = 0; b < blocks; b++) {
        struct part_cost cost = {0};
        run = b > 0 && place[b] == place[b - 1] ? run + 1 : 1;
        costs_block(costs, site, b, &strategy, NULL, samples, &cost, NULL);
        add_block(&alone, &cost, run);
        add_saved(&alone, costs, site, b);
        if (costs->model.tied && (b == 0 || b + 1 == blocks))
            alone.tied_bytes = fmax(alone.tied_bytes, (double)cost.state_bytes);
    }
    return alone;
}

static void take_smaller(struct alone *least, const struct alone *other)
{
    least->fixed_s = fmin(least->fixed_s, other->fixed_s);
    least->shared_s = fmin(least->shared_s, other->shared_s);
    least->once_s = fmin(least->once_s, other->once_s);
    least->run_fixed_s = fmin(least->run_fixed_s, other->run_fixed_s);
    least->run_shared_s = fmin(least->run_shared_s, other->run_shared_s);
}

/* Of all devices the least of each. */
static const struct alone *get_alone(struct bounds *bounds, int64_t samples)
{
    const struct planner_request *request = bounds->costs->request;
    for (size_t i = 0; i < bounds->count; i++)
        if (bounds->items[i].samples == samples)
            return &bounds->items[i];
    struct alone least = find_alone(bounds->costs, 0, samples);
    for (int i = 1; i < request->device_count; i++) {
        int known = 0;
        while (request->devices[known].profile != request->devices[i].profile)
            known++;
        if (known < i)
            continue;
        struct alone other = find_alone(bounds->costs, i, samples);
        take_smaller(&least, &other);
    }
    bounds->items = grow(bounds->items, bounds->count, &bounds->capacity, sizeof *bounds->items);
    bounds->items[bounds->count] = least;
    return &bounds->items[bounds->count++];
}

/* Each stage's devices take m T + u: together no less than the work, so one of them no less than
 * the mean. By the formula the first micro-batch passes all stages, the others the longest. */
struct point_bound bounds_point(struct bounds *bounds, const struct space_point *point)
{
    const struct alone *alone = get_alone(bounds, point->samples);
    int largest = (point->devices + point->stages - 1) / point->stages;
    int smallest = point->devices / point->stages, m = point->micro_batches;
    double pass = alone->fixed_s + alone->shared_s / largest;
    double mean = (alone->shared_s + smallest * alone->fixed_s) / point->devices;
    double blocks = ceil((double)alone->run / point->stages);
    double longest = fmax(mean, blocks * (alone->run_fixed_s + alone->run_shared_s / largest));
    double work = m * mean + alone->once_s / point->devices;
    return (struct point_bound){
        .formula_s = fmax(pass + (m - 1) * longest, work),
        .simulated_s = fmax(fmax(pass, work), m * longest),
    };
}

struct point_bound bounds_devices(struct bounds *bounds, int devices)
{
    int64_t batch = bounds->costs->request->job->train.global_batch;
    double least = INFINITY;
    for (int64_t m = 1; m <= batch && m <= PLAN_MICRO_BATCHES_MAX; m++)
        if (batch % m == 0) {
            const struct alone *alone = get_alone(bounds, batch / m);
            least = fmin(least, ((double)m * alone->shared_s + alone->once_s) / devices);
        }
    return (struct point_bound){least, least};
}

/* Every element lies somewhere, once at least. Tied weights, which two blocks have, are counted as
 * if the larger of the two had none. */
bool bounds_fit(struct bounds *bounds, const struct space_point *point)
{
    const struct costs *costs = bounds->costs;
    const struct alone *alone = get_alone(bounds, point->samples);
    double memory = 0;
    for (int i = 0; i < costs->request->device_count && i < point->devices; i++)
        memory += (double)site_memory_limit(costs->request, i);
    if (costs->sites.memory_scale > 0)
        memory *= costs->sites.memory_scale;
    return alone->state_bytes - alone->tied_bytes + alone->saved_bytes + alone->room_bytes <=
           memory;
}
