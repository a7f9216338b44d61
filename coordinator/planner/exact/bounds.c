/* bounds.c - separates work that can be shared from work that every device has to do.
 *
 * However a stage's devices divide its blocks, each of them launches every kernel, which takes a
 * fixed time. Of the remaining time of a block, and of the optimizer's, some device among c has at
 * least a c-th, or more if the model does not divide by c. Of a run of equal blocks some stage has
 * at least its share, rounded up. If all memory together is too small, some blocks must be
 * recomputed. */
#include "coordinator/planner/exact/bounds.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/exact/pipeline_bound.h"
#include "coordinator/planner/exact/unlike.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING 1e-12
#define DIVISIONS_WORK_MAX 20000 /* stages times blocks squared: quick for every point */

/* Micro-batches in flight on every stage at the same time, at some moment; the last stage has
 * fewest. */
static int least_in_flight(const struct space_point *point)
{
    return point->schedule->in_flight(point->stages - 1, point->stages, point->micro_batches);
}

/* Distribute equal blocks over stages[0] + stages[1] stages that take seconds[0] or seconds[1] per
 * block: the least time that the slowest stage can take. */
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

/* Terms of the formula and of events: the first micro-batch passes all stages, the others only wait
 * for the slowest stage; and what a single stage takes in total. */
struct terms {
    /* pass_s: of the first micro-batch; rest_s: of the others by the formula; steady_s: see
     * find_steady() */
    double pass_s, rest_s, steady_s, stage_s;
};

/* How often a stage does its work: all of a micro-batch, and its backward once more. */
struct times {
    int both, back;
};

/* Means over the devices, per micro-batch and per step. The point's devices together get through no
 * more than the sum of their speeds per second, so at least one of them takes no less than all the
 * work divided by that sum. On top of the work that can be shared, at least `smallest` devices
 * launch every kernel of each block; and the run's recomputation, kept_s, is done once by all
 * together. These, and what follows once per step, are counted at the speed of the slowest
 * device. If devices differ, a backward by itself is not counted. */
static double find_mean(const struct single_device *alone, int devices, int stages, double kept_s,
                        struct times times)
{
    double speeds = alone->speeds[devices], slowest = alone->slowest[devices];
    int smallest = devices / stages;
    double own_s = smallest * alone->fixed_s + kept_s;
    double back_s = alone->unlike ? 0 : alone->back_shared_s + smallest * alone->back_fixed_s;
    return (times.both * (alone->weighed_s + slowest * own_s) + times.back * back_s) / speeds;
}

static double find_once(const struct single_device *alone, int devices)
{
    return alone->slowest[devices] * alone->once_s / alone->speeds[devices];
}

/* The most that any stage takes for its work so many times. */
static double find_slowest(struct basis *basis, const struct space_point *point, double kept_s,
                           struct times times)
{
    const struct single_device *alone = basis_alone(basis, point->samples);
    int smallest = point->devices / point->stages, more = point->devices % point->stages;
    const int stages[2] = {point->stages - more, more};
    double block[2]; /* one block of the run, on a smaller and on a larger stage */
    if (times.both == 0 && times.back == 0)
        return 0;
    for (int i = 0; i < 2; i++) {
        struct run_floor floor = basis_floor(basis, alone, smallest + (i > 0 && more > 0));
        block[i] = INFINITY;
        if (isfinite(floor.both_s))
            block[i] = times.both * floor.both_s + times.back * floor.back_s;
    }
    return fmax(find_mean(alone, point->devices, point->stages, alone->run * kept_s, times),
                find_longest(alone->run, stages, block));
}

/* What a pipeline's slowest stage takes at least behind the first micro-batch: stages_ahead(). */
static double find_steady(struct basis *basis, const struct space_point *point, double kept_s)
{
    int again = point->micro_batches - 1;
    int ahead = stages_ahead(point->schedule, point->stages, point->micro_batches);
    return find_slowest(basis, point, kept_s, (struct times){again - ahead, ahead});
}

/* The devices of each stage are busy for m T + u. */
static struct terms find_terms(struct basis *basis, const struct space_point *point)
{
    const struct single_device *alone = basis_alone(basis, point->samples);
    int smallest = point->devices / point->stages, more = point->devices % point->stages;
    int largest = smallest + (more > 0), m = point->micro_batches;
    double kept_s =
        single_device_recompute(alone, basis_memory(basis, point->devices), least_in_flight(point));
    double mean_s =
        find_mean(alone, point->devices, point->stages, alone->run * kept_s, (struct times){1, 0});
    double least_share =
        fmin(basis_share(basis, alone, smallest), basis_share(basis, alone, largest));
    double block_s =
        fmin(basis_floor(basis, alone, smallest).both_s, basis_floor(basis, alone, largest).both_s);
    double shared_s = alone->run_shared_s * (least_share - 1.0 / largest) + kept_s * least_share;
    double floor_s = block_s - alone->run_fixed_s - alone->run_shared_s / largest;
    double whole =
        alone->fixed_s + alone->shared_s / largest + alone->run * fmax(shared_s, floor_s);
    bool one = point->stages == 1;
    return (struct terms){
        .pass_s = whole,
        .rest_s =
            (m - 1) * (one ? whole : find_slowest(basis, point, kept_s, (struct times){1, 0})),
        .steady_s = one ? (m - 1) * whole : find_steady(basis, point, kept_s),
        .stage_s = m * mean_s + find_once(alone, point->devices),
    };
}

/* Whether stages of so many devices can divide the blocks between the ends, or else this end. */
static bool may_divide(struct basis *basis, const struct single_device *alone, int devices, int end)
{
    const int *place = basis->costs->model.place;
    int last = (int)basis->costs->request->graph->block_count - 1;
    for (int b = 0; b <= last; b++)
        if ((b == end || (b > 0 && b < last && place[b] != place[b - 1])) &&
            isfinite(single_device_share(alone, &basis->splits, place[b], devices)))
            return true;
    return false;
}

/* The first block is on the first stage, the last one on the last; some stage has blocks of the
 * run, and if there is only one, all. */
bool bounds_legal(struct basis *basis, const struct space_point *point)
{
    const struct single_device *alone = basis_alone(basis, point->samples);
    int last = point->stages - 1, blocks = (int)basis->costs->request->graph->block_count;
    bool run = false;
    for (int stage = 0; stage <= last; stage++) {
        int devices = space_stage_devices(point, stage);
        int end = stage == 0 ? 0 : stage == last ? blocks - 1 : -1;
        bool has_run = isfinite(basis_share(basis, alone, devices));
        if (!has_run && (last == 0 || !may_divide(basis, alone, devices, end)))
            return false;
        run = run || has_run;
    }
    return run;
}

/* Over all divisions of the run into whole blocks, if all blocks but the first and the last are of
 * it, and all devices are alike. least_s: a bound that is known. */
static double by_divisions(struct basis *basis, const struct space_point *point,
                           const struct single_device *alone, double least_s)
{
    int blocks = (int)basis->costs->request->graph->block_count, stages = point->stages;
    double work = (double)stages * blocks * blocks;
    /* Of points that are judged by events more is known anyhow, and in a hurry there is no time. */
    bool worth = !basis->costs->request->hurry && !bounds_large(basis, point);
    if (!worth || stages == 1 || alone->unlike || blocks != alone->run + 2 ||
        work > DIVISIONS_WORK_MAX)
        return least_s;
    double *pass_s = xcalloc((size_t)stages * ((size_t)blocks + 1), sizeof *pass_s);
    for (int stage = 0; stage < stages; stage++)
        for (int b = 1; b <= blocks; b++) {
            int devices = space_stage_devices(point, stage);
            double *at = &pass_s[stage * (blocks + 1) + b];
            bool of_run = b > 1 && b < blocks;
            at[0] = at[-1] + (of_run ? alone->run_fixed_s + alone->run_shared_s / devices : 0);
        }
    const struct pipeline pipeline = {stages, blocks, point->micro_batches, pass_s, NULL};
    double bound_s = pipeline_bound(&pipeline, least_s, INFINITY);
    free(pass_s);
    return bound_s;
}

/* In simulated programs the slowest device may differ from block to block. */
static double by_programs(struct basis *basis, const struct space_point *point)
{
    const struct single_device *alone = basis_alone(basis, point->samples);
    int m = point->micro_batches;
    int largest = point->devices / point->stages + (point->devices % point->stages > 0);
    double pass = (alone->fixed_s + alone->shared_s / largest) * evaluate_passes(point->stages, m);
    double mean_s = find_mean(alone, point->devices, point->stages, 0, (struct times){1, 0});
    double work = m * mean_s + find_once(alone, point->devices) + basis_once(basis, point->devices);
    double blocks = ceil((double)alone->run / point->stages);
    double block = alone->run_fixed_s + alone->run_shared_s / largest;
    double least_s = fmax(fmax(pass, work), m * fmax(mean_s, blocks * block));
    return by_divisions(basis, point, alone, least_s);
}

static double by_events(const struct space_point *point, const struct terms *terms, double once_s)
{
    double share = stages_share(point->schedule, point->stages, point->micro_batches);
    double passes = evaluate_passes(point->stages, point->micro_batches) * terms->pass_s;
    double formula_s = terms->pass_s + terms->rest_s + once_s;
    return fmax(fmax(share * formula_s, terms->pass_s + terms->steady_s + once_s),
                fmax(passes, terms->stage_s + once_s));
}

double bounds_by_events(struct basis *basis, const struct space_point *point)
{
    struct terms terms = find_terms(basis, point);
    return by_events(point, &terms, basis_once(basis, point->devices));
}

struct point_bound bounds_point(struct basis *basis, const struct space_point *point)
{
    struct terms terms = find_terms(basis, point);
    double programs_s = by_programs(basis, point), once_s = basis_once(basis, point->devices);
    return (struct point_bound){
        .formula_s = fmax(terms.pass_s + terms.rest_s, terms.stage_s) + once_s,
        .simulated_s = bounds_large(basis, point)
                           ? fmax(programs_s, by_events(point, &terms, once_s))
                           : programs_s,
    };
}

bool bounds_large(const struct basis *basis, const struct space_point *point)
{
    int blocks = (int)basis->costs->request->graph->block_count;
    return stages_judge(point->devices, blocks, point->stages, point->micro_batches);
}

struct point_bound bounds_unlike(struct basis *basis, const struct space_point *point)
{
    const struct single_device *alone = basis_alone(basis, point->samples);
    if (!basis->unlike)
        return (struct point_bound){0, 0};
    struct block_run run = {alone->run_last, alone->run, alone->run_state_bytes, {0}};
    memcpy(run.saved_bytes, alone->run_saved_bytes, sizeof run.saved_bytes);
    struct unlike_bound bound = unlike_bound(basis->costs, point, &run);
    double share = stages_share(point->schedule, point->stages, point->micro_batches);
    return (struct point_bound){
        .formula_s = bound.formula_s,
        .simulated_s = bounds_large(basis, point) ? fmax(bound.programs_s, share * bound.formula_s)
                                                  : bound.programs_s,
    };
}

struct point_bound bounds_devices(struct basis *basis, int devices)
{
    int64_t batch = basis->costs->request->job->train.global_batch;
    double least = INFINITY;
    for (int64_t m = 1; m <= batch && m <= PLAN_MICRO_BATCHES_MAX; m++)
        if (batch % m == 0) {
            const struct single_device *alone = basis_alone(basis, batch / m);
            double mean_s = find_mean(alone, devices, devices, 0, (struct times){1, 0});
            least = fmin(least, (double)m * mean_s + find_once(alone, devices));
        }
    least += basis_once(basis, devices);
    return (struct point_bound){least, least};
}

bool bounds_fit(struct basis *basis, const struct space_point *point)
{
    const struct single_device *alone = basis_alone(basis, point->samples);
    return single_device_bytes(alone, least_in_flight(point)) <=
           basis_memory(basis, point->devices);
}
