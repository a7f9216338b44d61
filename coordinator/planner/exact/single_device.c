/* single_device.c - prices the blocks one after the other on a single device, without collectives,
 * and sums them up; the longest run of equal blocks is also kept by itself. */
#include "coordinator/planner/exact/single_device.h"

#include "common/base/memory.h"
#include "coordinator/planner/exact/run_floor.h"
#include <math.h>
#include <stdlib.h>

static void add_block(struct single_device *alone, const struct part_cost *cost, int block, int run)
{
    double seconds = cost->forward_s + cost->backward_s;
    alone->fixed_s += cost->fixed_s;
    alone->shared_s += seconds - cost->fixed_s;
    alone->back_fixed_s += cost->fixed_back_s;
    alone->back_shared_s += cost->backward_s - cost->fixed_back_s;
    alone->once_s += cost->once_s;
    alone->state_bytes += (double)cost->bytes.state;
    if (run <= alone->run)
        return;
    alone->run = run;
    alone->run_last = block;
    alone->run_fixed_s = cost->fixed_s;
    alone->run_shared_s = seconds - cost->fixed_s;
    alone->run_back_fixed_s = cost->fixed_back_s;
    alone->run_back_shared_s = cost->backward_s - cost->fixed_back_s;
    alone->run_state_bytes = (double)cost->bytes.state;
}

/* The least that a block keeps between forward and backward with any recomputation, its least
 * transient room, and what the joint before it keeps. */
static void add_saved(struct single_device *alone, struct costs *costs, const struct site *site,
                      int block)
{
    const struct job_plan *plan = &costs->request->job->plan;
    struct strategy strategy = {0}, plain = {0};
    struct part_cost cost;
    double saved = INFINITY, room = INFINITY, plain_s = alone->run_fixed_s + alone->run_shared_s;
    for (int recompute = 0; recompute < RECOMPUTES; recompute++) {
        bool of_run = block == alone->run_last;
        strategy.recompute = (enum recompute)recompute;
        if (of_run)
            alone->run_saved_bytes[recompute] = INFINITY;
        if (plan->forbid.recompute >> recompute & 1 ||
            costs_block(costs, site, block, &strategy, NULL, alone->samples, &cost, NULL) < 0)
            continue;
        saved = fmin(saved, (double)cost.bytes.saved);
        room = fmin(room, fmax((double)cost.bytes.other, (double)cost.bytes.forward));
        if (!of_run)
            continue;
        alone->run_saved_bytes[recompute] = (double)cost.bytes.saved;
        alone->run_more_s[recompute] = fmax(cost.forward_s + cost.backward_s - plain_s, 0);
    }
    alone->saved_bytes += isfinite(saved) ? saved : 0;
    alone->room_bytes = fmax(alone->room_bytes, isfinite(room) ? room : 0);
    if (block > 0 &&
        costs_joint(costs, site, block - 1, &plain, &plain, alone->samples, &cost, NULL) == 0)
        alone->saved_bytes += (double)cost.bytes.saved;
}

static struct single_device find_device(struct costs *costs, int device, int64_t samples)
{
    struct mesh mesh = {0};
    struct strategy strategy = {0};
    struct single_device alone = {.samples = samples};
    const struct site *site = sites_add(&costs->sites, device, &mesh);
    const int *place = costs->model.place;
    int blocks = (int)costs->request->graph->block_count;
    for (int b = 0, run = 0; b < blocks; b++) {
        struct part_cost cost = {0};
        run = b > 0 && place[b] == place[b - 1] ? run + 1 : 1;
        costs_block(costs, site, b, &strategy, NULL, samples, &cost, NULL);
        if (costs->model.tied && b + 1 == blocks)
            cost.once_s = 0; /* the first block reduces and updates what is tied */
        add_block(&alone, &cost, b, run);
        add_saved(&alone, costs, site, b);
        if (costs->model.tied && (b == 0 || b + 1 == blocks))
            alone.tied_bytes = fmax(alone.tied_bytes, (double)cost.bytes.state);
    }
    return alone;
}

static void take_smaller(struct single_device *least, const struct single_device *other)
{
    least->fixed_s = fmin(least->fixed_s, other->fixed_s);
    least->shared_s = fmin(least->shared_s, other->shared_s);
    least->back_fixed_s = fmin(least->back_fixed_s, other->back_fixed_s);
    least->back_shared_s = fmin(least->back_shared_s, other->back_shared_s);
    least->once_s = fmin(least->once_s, other->once_s);
    least->run_fixed_s = fmin(least->run_fixed_s, other->run_fixed_s);
    least->run_shared_s = fmin(least->run_shared_s, other->run_shared_s);
    least->run_back_fixed_s = fmin(least->run_back_fixed_s, other->run_back_fixed_s);
    least->run_back_shared_s = fmin(least->run_back_shared_s, other->run_back_shared_s);
    for (int i = 0; i < RECOMPUTES; i++)
        least->run_more_s[i] = fmin(least->run_more_s[i], other->run_more_s[i]);
}

/* The first device with the same profile as this one. */
static int find_like(const struct planner_request *request, int device)
{
    int like = 0;
    while (request->devices[like].profile != request->devices[device].profile)
        like++;
    return like;
}

/* The shareable time of a block on the device. */
static double block_shared(struct costs *costs, int device, int block, int64_t samples)
{
    const struct mesh mesh = {0};
    const struct strategy strategy = {0};
    struct part_cost cost = {0};
    costs_block(costs, sites_add(&costs->sites, device, &mesh), block, &strategy, NULL, samples,
                &cost, NULL);
    return cost.forward_s + cost.backward_s - cost.fixed_s;
}

/* The total worth of a micro-batch. Device i is each[i] times as fast at a block of the run as the
 * device that is fastest over all blocks. A block is worth the least of each[i] times its shareable
 * seconds on device i, over all devices. So in time t device i does at most t * each[i] of what
 * blocks are worth, and devices together take no less than the total worth divided by the sum of
 * their speeds. */
static double weigh(struct costs *costs, const double *each, int64_t samples)
{
    const struct planner_request *request = costs->request;
    const int *place = costs->model.place;
    double sum = 0, worth = 0;
    for (int b = 0; b < (int)request->graph->block_count; b++) {
        for (int i = 0; (b == 0 || place[b] != place[b - 1]) && i < request->device_count; i++) {
            double weighed_s = find_like(request, i) == i
                                   ? each[i] * block_shared(costs, i, b, samples)
                                   : INFINITY;
            worth = i == 0 ? weighed_s : fmin(worth, weighed_s);
        }
        sum += worth;
    }
    return sum;
}

static void add_speeds(struct single_device *alone, struct costs *costs, int fastest)
{
    const struct planner_request *request = costs->request;
    int count = request->device_count;
    double *each = xcalloc((size_t)count, sizeof *each);
    double fastest_s = block_shared(costs, fastest, alone->run_last, alone->samples);
    alone->speeds = xcalloc((size_t)count + 1, sizeof *alone->speeds);
    alone->slowest = xcalloc((size_t)count + 1, sizeof *alone->slowest);
    alone->slowest[0] = INFINITY;
    for (int i = 0; i < count; i++) {
        int like = find_like(request, i);
        each[i] = like < i ? each[like]
                           : fastest_s / block_shared(costs, i, alone->run_last, alone->samples);
        alone->speeds[i + 1] = alone->speeds[i] + each[i];
        alone->slowest[i + 1] = fmin(alone->slowest[i], each[i]);
    }
    alone->weighed_s = alone->unlike ? weigh(costs, each, alone->samples) : alone->shared_s;
    free(each);
}

void single_device_init(struct single_device *alone, struct costs *costs, int64_t samples)
{
    const struct planner_request *request = costs->request;
    int fastest = 0;
    *alone = find_device(costs, 0, samples);
    for (int i = 1; i < request->device_count; i++) {
        if (find_like(request, i) < i)
            continue;
        struct single_device other = find_device(costs, i, samples);
        if (other.shared_s < alone->shared_s)
            fastest = i;
        take_smaller(alone, &other);
        alone->unlike = true;
    }
    alone->shares = xcalloc(costs->model.graph->block_count * (size_t)request->device_count,
                            sizeof *alone->shares);
    alone->floors = xcalloc((size_t)request->device_count, sizeof *alone->floors);
    add_speeds(alone, costs, fastest);
}

void single_device_finish(struct single_device *alone)
{
    free(alone->shares);
    free(alone->floors);
    free(alone->speeds);
    free(alone->slowest);
}

double single_device_share(const struct single_device *alone, struct splits *splits, int place,
                           int devices)
{
    double *known = &alone->shares[place * splits->costs->request->device_count + devices - 1];
    if (*known == 0)
        *known = shares_least(splits, place, alone->samples, devices);
    return *known;
}

/* Tied weights occur in two blocks; the larger count of the two is subtracted. */
double single_device_bytes(const struct single_device *alone, int in_flight)
{
    return alone->state_bytes - alone->tied_bytes + in_flight * alone->saved_bytes +
           alone->room_bytes;
}

/* The mean of two recomputations, one that keeps more and one that keeps less. */
double single_device_recompute(const struct single_device *alone, double memory_bytes,
                               int in_flight)
{
    const double *more = alone->run_more_s;
    double saved[RECOMPUTES], smallest = INFINITY, best = INFINITY, worst = 0;
    for (int i = 0; i < RECOMPUTES; i++) {
        saved[i] = in_flight * alone->run_saved_bytes[i];
        smallest = fmin(smallest, saved[i]);
    }
    if (isinf(smallest))
        return 0;
    double may = (memory_bytes - single_device_bytes(alone, in_flight)) / alone->run + smallest;
    for (int i = 0; i < RECOMPUTES; i++) {
        worst = isfinite(saved[i]) ? fmax(worst, more[i]) : worst;
        for (int j = 0; j < RECOMPUTES && saved[i] <= may; j++) {
            /* share of the blocks that keep more */
            double share =
                saved[j] > may && isfinite(saved[j]) ? (may - saved[i]) / (saved[j] - saved[i]) : 0;
            best = fmin(best, more[i] + share * fmin(more[j] - more[i], 0));
        }
    }
    return isfinite(best) ? best : worst;
}
