/* bounds.c - work that can be shared, and what every device has to do itself.
 *
 * However a stage's devices divide its blocks, each of them launches every kernel, which takes a
 * fixed time; the rest of a block's time, and the optimizer's, one of c devices has a c-th of at
 * least. It has more where the model does not divide by c: an axis splits the samples, of which
 * each device has a whole number, or another dim of the block, which it has to divide. Of a run of
 * equal blocks some stage has its share, rounded up. */
#include "coordinator/planner/bounds.h"

#include "common/base/memory.h"

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
    double *shares; /* per number of devices less one: see share_of; 0: not known yet */
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
}

static void add_block(struct alone *alone, const struct part_cost *cost, int block, int run)
{
    double seconds = cost->forward_s + cost->backward_s;
    alone->fixed_s += cost->fixed_s;
    alone->shared_s += seconds - cost->fixed_s;
    alone->once_s += cost->once_s;
    alone->state_bytes += (double)cost->state_bytes;
    if (run > alone->run) {
        alone->run = run;
        alone->run_last = block;
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
        if (costs->model.tied && b + 1 == blocks)
            cost.once_s = 0; /* the first block reduces and updates what is tied */
        add_block(&alone, &cost, b, run);
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
    least.shares = xcalloc((size_t)request->device_count, sizeof *least.shares);
    bounds->items = grow(bounds->items, bounds->count, &bounds->capacity, sizeof *bounds->items);
    bounds->items[bounds->count] = least;
    return &bounds->items[bounds->count++];
}

/* Does the number divide any dim of the block's tensors but the samples? */
static bool divides_any(const struct graph *graph, int block, int number)
{
    const struct block *of = &graph->blocks[block];
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        const struct operation *operation = graph->nodes[n].operation;
        for (int i = 0; i <= operation_output(operation); i++)
            for (const char *dim = operation->dims[i]; *dim; dim++)
                if (*dim != 'b' && sizes_get(&graph->sizes, *dim) % number == 0)
                    return true;
    }
    return false;
}

/* Can axes of so many devices together split the block's work otherwise than by samples? An axis
 * has a prime number of devices, or a product of primes. */
static bool may_split(const struct graph *graph, int block, int devices)
{
    for (int prime = 2; devices > 1; prime++)
        for (bool first = true; devices % prime == 0; devices /= prime, first = false)
            if (first && !divides_any(graph, block, prime))
                return false;
    return true;
}

/* Of the work on one block of the longest run, what some device of a stage has at least. */
static double find_share(const struct graph *graph, const struct alone *alone, int devices)
{
    double least = 1;
    for (int by_samples = 1; by_samples <= devices; by_samples++) {
        int otherwise = devices / by_samples;
        if (devices % by_samples != 0 || !may_split(graph, alone->run_last, otherwise))
            continue;
        double samples = ceil((double)alone->samples / by_samples);
        least = fmin(least, samples / (double)alone->samples / otherwise);
    }
    return least;
}

static double share_of(const struct bounds *bounds, const struct alone *alone, int devices)
{
    double *known = &alone->shares[devices - 1];
    if (*known == 0)
        *known = find_share(bounds->costs->request->graph, alone, devices);
    return *known;
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

/* Each stage's devices take m T + u: together no less than the work, so one of them no less than
 * the mean. The first micro-batch passes all stages, the others the longest. By the formula every
 * block takes what the device that has most of it takes, by simulation that may be another one. */
struct point_bound bounds_point(struct bounds *bounds, const struct space_point *point)
{
    const struct alone *alone = get_alone(bounds, point->samples);
    int smallest = point->devices / point->stages, more = point->devices % point->stages;
    int largest = smallest + (more > 0), m = point->micro_batches;
    const int stages[2] = {point->stages - more, more};
    const double share[2] = {share_of(bounds, alone, smallest), share_of(bounds, alone, largest)};
    double block[2]; /* of the run, on either kind of stage */
    for (int i = 0; i < 2; i++)
        block[i] = alone->run_fixed_s + alone->run_shared_s * share[i];
    double pass = alone->fixed_s + alone->shared_s / largest;
    double mean = (alone->shared_s + smallest * alone->fixed_s) / point->devices;
    double blocks = ceil((double)alone->run / point->stages);
    double work = m * mean + alone->once_s / point->devices;
    double more_s = alone->run_shared_s * (fmin(share[0], share[1]) - 1.0 / largest);
    double whole = pass + alone->run * more_s;
    double longest =
        point->stages == 1 ? whole : fmax(mean, find_longest(alone->run, stages, block));
    double simulated_block = alone->run_fixed_s + alone->run_shared_s / largest;
    return (struct point_bound){
        .formula_s = fmax(whole + (m - 1) * longest, work),
        .simulated_s = fmax(fmax(pass, work), m * fmax(mean, blocks * simulated_block)),
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
