/* bounds.c - work that can be shared, and what every device has to do itself.
 *
 * However a stage's devices divide its blocks, each of them launches every kernel, which takes a
 * fixed time; the rest of a block's time, and the optimizer's, one of c devices has a c-th of at
 * least, or more where the model does not divide by c. Of a run of equal blocks some stage has its
 * share, rounded up; and where all memory together is too small, some of them are recomputed. */
#include "coordinator/planner/bounds.h"

#include "common/base/memory.h"
#include "coordinator/planner/events.h"
#include "coordinator/planner/shares.h"
#include "coordinator/planner/unlike.h"

#include <math.h>
#include <stdlib.h>

#define ROUNDING 1e-12

/* One device, all blocks: a micro-batch's forward and backward, fixed and otherwise, and what
 * follows once a step. */
struct alone {
    int64_t samples;
    double fixed_s, shared_s, once_s;
    double state_bytes, tied_bytes;
    double saved_bytes, room_bytes; /* of one micro-batch; of the largest block's room */
    /* The longest run of equal blocks: each of them, and where it ends. */
    int run, run_last;
    double run_fixed_s, run_shared_s;
    /* Of each with every recomputation: what it takes more than the fastest, and keeps. */
    double run_more_s[RECOMPUTES], run_saved_bytes[RECOMPUTES];
    double *shares; /* per number of devices less one: see shares_least; 0: not known yet */
};

void bounds_init(struct bounds *bounds, struct costs *costs)
{
    *bounds = (struct bounds){.costs = costs};
}

void bounds_finish(struct bounds *bounds)
{
    for (size_t i = 0; i < bounds->count; i++)
        free(bounds->items[i].shares);
    free(bounds->items);
    free(bounds->memory_bytes);
}

static void add_block(struct alone *alone, const struct part_cost *cost, int block, int run)
{
    double seconds = cost->forward_s + cost->backward_s;
    alone->fixed_s += cost->fixed_s;
    alone->shared_s += seconds - cost->fixed_s;
    alone->once_s += cost->once_s;
    alone->state_bytes += (double)cost->bytes.state;
    if (run <= alone->run)
        return;
    alone->run = run;
    alone->run_last = block;
    alone->run_fixed_s = cost->fixed_s;
    alone->run_shared_s = seconds - cost->fixed_s;
}

/* The least that recomputation leaves of a block between forward and backward, and of its room;
 * and what the joint before it keeps for it. */
static void add_saved(struct alone *alone, struct costs *costs, const struct site *site, int block)
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
        if (costs->model.tied && b + 1 == blocks)
            cost.once_s = 0; /* the first block reduces and updates what is tied */
        add_block(&alone, &cost, b, run);
        add_saved(&alone, costs, site, b);
        if (costs->model.tied && (b == 0 || b + 1 == blocks))
            alone.tied_bytes = fmax(alone.tied_bytes, (double)cost.bytes.state);
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
    for (int i = 0; i < RECOMPUTES; i++)
        least->run_more_s[i] = fmin(least->run_more_s[i], other->run_more_s[i]);
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
        bounds->unlike = true;
        struct alone other = find_alone(bounds->costs, i, samples);
        take_smaller(&least, &other);
    }
    least.shares = xcalloc((size_t)request->device_count, sizeof *least.shares);
    bounds->items = grow(bounds->items, bounds->count, &bounds->capacity, sizeof *bounds->items);
    bounds->items[bounds->count] = least;
    return &bounds->items[bounds->count++];
}

static double share_of(const struct bounds *bounds, const struct alone *alone, int devices)
{
    double *known = &alone->shares[devices - 1];
    if (*known == 0)
        *known =
            shares_least(bounds->costs->request->graph, alone->run_last, alone->samples, devices);
    return *known;
}

/* Of all devices of the point together. */
static double memory_of(struct bounds *bounds, const struct space_point *point)
{
    const struct costs *costs = bounds->costs;
    int count = costs->request->device_count;
    if (!bounds->memory_bytes) {
        bounds->memory_bytes = xcalloc((size_t)count + 1, sizeof *bounds->memory_bytes);
        for (int i = 0; i < count; i++)
            bounds->memory_bytes[i + 1] =
                bounds->memory_bytes[i] + (double)site_memory_limit(costs->request, i);
    }
    double scale = costs->sites.memory_scale > 0 ? costs->sites.memory_scale : 1;
    return scale * bounds->memory_bytes[point->devices];
}

/* Micro-batches that are kept on every stage at once, at some time; the last has fewest. */
static int least_in_flight(const struct space_point *point)
{
    return point->schedule->in_flight(point->stages - 1, point->stages, point->micro_batches);
}

/* Every element lies somewhere, once at least. Tied weights, which two blocks have, are counted as
 * if the larger of the two had none. */
static double least_bytes(const struct alone *alone, int in_flight)
{
    return alone->state_bytes - alone->tied_bytes + in_flight * alone->saved_bytes +
           alone->room_bytes;
}

/* What a block of the run takes more, on the mean, than the fastest way to compute it, because all
 * of them together may keep so much and no more: between two recomputations, one that keeps more
 * and one that keeps less. */
static double more_for_memory(const struct alone *alone, double memory_bytes, int in_flight)
{
    const double *more = alone->run_more_s;
    double saved[RECOMPUTES], smallest = INFINITY, best = INFINITY, worst = 0;
    for (int i = 0; i < RECOMPUTES; i++) {
        saved[i] = in_flight * alone->run_saved_bytes[i];
        smallest = fmin(smallest, saved[i]);
    }
    if (isinf(smallest))
        return 0;
    double may = (memory_bytes - least_bytes(alone, in_flight)) / alone->run + smallest;
    for (int i = 0; i < RECOMPUTES; i++) {
        worst = isfinite(saved[i]) ? fmax(worst, more[i]) : worst;
        for (int j = 0; j < RECOMPUTES && saved[i] <= may; j++) {
            double share = saved[j] > may && isfinite(saved[j]) /* of those that keep more */
                               ? (may - saved[i]) / (saved[j] - saved[i])
                               : 0;
            best = fmin(best, more[i] + share * fmin(more[j] - more[i], 0));
        }
    }
    return isfinite(best) ? best : worst;
}

/* Equal blocks are divided over so many stages on which each takes so long: the stage that takes
 * longest takes no less. */
static double find_longest(int blocks, const int stages[2], const double seconds[2])
{
    double longest = blocks / (stages[0] / seconds[0] + stages[1] / seconds[1]);
    for (;;) {
        double next = INFINITY;
        int places = 0;
        for (int i = 0; i < 2; i++) {
            double each = floor(longest / seconds[i] * (1 + ROUNDING));
            places += stages[i] * (int)each;
            next = stages[i] > 0 ? fmin(next, (each + 1) * seconds[i]) : next;
        }
        if (places >= blocks)
            return longest * (1 - ROUNDING);
        longest = next;
    }
}

/* By the formula: the first micro-batch passes all stages, the others the longest; and what one of
 * the stages takes all in all. */
struct terms {
    double pass_s, passes_s, stage_s; /* pass: of the first alone */
};

/* Each stage's devices take m T + u: together no less than the work, so one of them no less than
 * the mean. */
static struct terms find_terms(struct bounds *bounds, const struct space_point *point)
{
    const struct alone *alone = get_alone(bounds, point->samples);
    int smallest = point->devices / point->stages, more = point->devices % point->stages;
    int largest = smallest + (more > 0), m = point->micro_batches;
    const int stages[2] = {point->stages - more, more};
    const double share[2] = {share_of(bounds, alone, smallest), share_of(bounds, alone, largest)};
    double kept_s = more_for_memory(alone, memory_of(bounds, point), least_in_flight(point));
    double block[2]; /* of the run, on either kind of stage */
    for (int i = 0; i < 2; i++)
        block[i] = alone->run_fixed_s + alone->run_shared_s * share[i];
    double mean =
        (alone->shared_s + smallest * alone->fixed_s + alone->run * kept_s) / point->devices;
    double least_share = fmin(share[0], share[1]);
    double whole =
        alone->fixed_s + alone->shared_s / largest +
        alone->run * (alone->run_shared_s * (least_share - 1.0 / largest) + kept_s * least_share);
    double longest =
        point->stages == 1 ? whole : fmax(mean, find_longest(alone->run, stages, block));
    return (struct terms){whole, whole + (m - 1) * longest,
                          m * mean + alone->once_s / point->devices};
}

/* By programs a block may take what another device takes than the one that has most of it. */
static double by_programs(struct bounds *bounds, const struct space_point *point)
{
    const struct alone *alone = get_alone(bounds, point->samples);
    int smallest = point->devices / point->stages, m = point->micro_batches;
    int largest = smallest + (point->devices % point->stages > 0);
    double pass = (alone->fixed_s + alone->shared_s / largest) * evaluate_passes(point->stages, m);
    double mean = (alone->shared_s + smallest * alone->fixed_s) / point->devices;
    double work = m * mean + alone->once_s / point->devices;
    double blocks = ceil((double)alone->run / point->stages);
    double block = alone->run_fixed_s + alone->run_shared_s / largest;
    return fmax(fmax(pass, work), m * fmax(mean, blocks * block));
}

double bounds_by_events(struct bounds *bounds, const struct space_point *point)
{
    struct terms terms = find_terms(bounds, point);
    double share = events_share(point->schedule, point->stages, point->micro_batches);
    double passes = evaluate_passes(point->stages, point->micro_batches);
    return fmax(fmax(share * terms.passes_s, passes * terms.pass_s), terms.stage_s);
}

struct point_bound bounds_point(struct bounds *bounds, const struct space_point *point)
{
    struct terms terms = find_terms(bounds, point);
    double programs_s = by_programs(bounds, point);
    return (struct point_bound){
        .formula_s = fmax(terms.passes_s, terms.stage_s),
        .simulated_s = bounds_large(bounds, point)
                           ? fmax(programs_s, bounds_by_events(bounds, point))
                           : programs_s,
    };
}

bool bounds_large(const struct bounds *bounds, const struct space_point *point)
{
    int blocks = (int)bounds->costs->request->graph->block_count;
    return events_judge(point->devices, blocks, point->stages, point->micro_batches);
}

double bounds_unlike(struct bounds *bounds, const struct space_point *point)
{
    const struct alone *alone = get_alone(bounds, point->samples);
    const struct block_run run = {alone->run_last, alone->run};
    return bounds->unlike ? unlike_bound(bounds->costs, point, run) : 0;
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

bool bounds_fit(struct bounds *bounds, const struct space_point *point)
{
    const struct alone *alone = get_alone(bounds, point->samples);
    return least_bytes(alone, least_in_flight(point)) <= memory_of(bounds, point);
}
