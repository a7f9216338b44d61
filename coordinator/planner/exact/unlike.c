/* unlike.c - stages of unlike devices, and the blocks that each has room for.
 *
 * A stage takes e + n t for n blocks of the run, where e is the time of an end of the model if it
 * has one. It holds no more blocks than its memory permits, and the more it holds, the more of them
 * are recomputed. The slowest stage takes at least the least time for which all stages together
 * have room for all blocks. */
#include "coordinator/planner/exact/unlike.h"

#include "common/base/memory.h"
#include "coordinator/planner/exact/block_times.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING 1e-12

/* One stage: time of the end of the model that it has, if any, and of a block of the run per
 * recomputation; memory for blocks of the run, bytes of state and of saved activations of each
 * block; the number of accounts; and how many blocks it has room for. */
struct stage {
    struct block_times end, block[RECOMPUTES];
    double memory_bytes, state_bytes, saved_bytes[RECOMPUTES];
    int accounts, room;
};

/* How a stage's seconds are taken: by the formula, or from one of the accounts. */
#define BY_FORMULA (-1)

static double times_get(const struct block_times *times, int account)
{
    return account == BY_FORMULA ? times->formula_s : times->accounts_s[account];
}

/* Mean seconds of each of this many blocks, if some are recomputed more than others so that all of
 * them have room. */
static double mean_seconds(const struct stage *stage, int account, int blocks)
{
    double may = stage->memory_bytes * (1 + ROUNDING) / blocks - stage->state_bytes;
    double least_s = INFINITY;
    for (int i = 0; i < RECOMPUTES; i++)
        for (int j = 0; j < RECOMPUTES && stage->saved_bytes[i] <= may; j++) {
            double less_s = times_get(&stage->block[i], account), more = stage->saved_bytes[j];
            double share = more > may && isfinite(more) /* share of the blocks that keep more */
                               ? (may - stage->saved_bytes[i]) / (more - stage->saved_bytes[i])
                               : 0;
            double saved_s = less_s - times_get(&stage->block[j], account);
            least_s = fmin(least_s, less_s - share * fmax(saved_s, 0));
        }
    return isfinite(least_s) ? least_s : times_get(&stage->block[RECOMPUTE_NONE], account);
}

static double account_seconds(const struct stage *stage, int account, int blocks)
{
    double end_s = times_get(&stage->end, account);
    return blocks > 0 ? end_s + blocks * mean_seconds(stage, account, blocks) : end_s;
}

enum referee { FORMULA, PROGRAMS };

static double stage_seconds(const struct stage *stage, enum referee referee, int blocks)
{
    if (referee == FORMULA)
        return account_seconds(stage, BY_FORMULA, blocks);
    double most = 0;
    for (int i = 0; i < stage->accounts; i++)
        most = fmax(most, account_seconds(stage, i, blocks));
    return most;
}

/* How many blocks a stage can process within this time. */
static int blocks_within(const struct stage *stage, enum referee referee, double seconds)
{
    int low = -1, high = stage->room;
    while (low < high) {
        int middle = high - (high - low) / 2;
        if (stage_seconds(stage, referee, middle) <= seconds * (1 + ROUNDING))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The least possible time of the slowest stage. Together the stages must have room for all
 * blocks. */
static double find_longest(const struct stage *stages, int count, enum referee referee, int blocks)
{
    double longest = 0;
    for (int i = 0; i < count; i++)
        longest = fmax(longest, stage_seconds(&stages[i], referee, 0));
    for (;;) {
        double next = INFINITY;
        int places = 0;
        for (int i = 0; i < count; i++) {
            int has = blocks_within(&stages[i], referee, longest);
            places += has;
            if (has < stages[i].room)
                next = fmin(next, stage_seconds(&stages[i], referee, has + 1));
        }
        if (places >= blocks)
            return longest;
        longest = next;
    }
}

/* In simulated programs a stage begins only after some rank of each earlier stage has run the first
 * micro-batch forward, and that rank runs the last micro-batch backward only after the stage has.
 * Of a stage with n blocks let t be the seconds of a block and e those of the ends of the model,
 * both in the account with the largest t, and t' and e' the same on the fastest rank. Then for
 * every stage the step L is at least m (e + n t) plus the sum of e' + n' t' over the earlier
 * stages, where n' is their number of blocks.
 *
 * Choose for every stage a weight y >= 0 of its inequality such that y m t + (sum of y over the
 * later stages) t' >= 1. In the weighted sum of all inequalities each block then counts at least 1,
 * so that L times the sum of y is at least the number of blocks plus what the ends add. */
static double find_pass(const struct stage *stages, int count, int micro_batches, int blocks)
{
    double weights = 0, ends = 0;
    for (int i = count - 1; i >= 0; i--) {
        const struct block_times *block = &stages[i].block[RECOMPUTE_NONE];
        int slowest = 0;
        for (int k = 1; k < stages[i].accounts; k++)
            if (block->accounts_s[k] > block->accounts_s[slowest])
                slowest = k;
        double each_s = micro_batches * block->accounts_s[slowest];
        double weight = fmax(1 - weights * block->least_s, 0) / each_s;
        ends += weight * micro_batches * stages[i].end.accounts_s[slowest] +
                weights * stages[i].end.least_s;
        weights += weight;
    }
    return (blocks + ends) / weights;
}

/* Least sum over all blocks by the formula, on the fastest stages as far as they have room. */
static double find_sum(const struct stage *stages, int count, int blocks)
{
    double sum = 0, before = -INFINITY;
    for (int i = 0; i < count; i++)
        sum += stages[i].end.formula_s;
    while (blocks > 0) {
        double fastest = INFINITY;
        int places = 0;
        for (int i = 0; i < count; i++)
            if (stages[i].block[RECOMPUTE_NONE].formula_s > before)
                fastest = fmin(fastest, stages[i].block[RECOMPUTE_NONE].formula_s);
        for (int i = 0; i < count; i++)
            places += stages[i].block[RECOMPUTE_NONE].formula_s == fastest ? stages[i].room : 0;
        assert(isfinite(fastest) && "together they have room for all");
        sum += (places < blocks ? places : blocks) * fastest;
        blocks -= places;
        before = fastest;
    }
    return sum;
}

/* Memory that the stage's devices together have for blocks of the run, beside `bytes` for other
 * state, and how many such blocks fit at most. */
static void find_room(struct stage *stage, const struct costs *costs, const struct site *site,
                      const struct space_point *point, int index, const struct block_run *run,
                      double bytes)
{
    double scale = costs->sites.memory_scale > 0 ? costs->sites.memory_scale : 1, least = INFINITY;
    int in_flight = point->schedule->in_flight(index, point->stages, point->micro_batches);
    stage->memory_bytes = -bytes;
    for (int i = 0; i < mesh_count(&site->mesh); i++)
        stage->memory_bytes +=
            scale * (double)planner_memory_limit(costs->request, site->first + i);
    stage->state_bytes = run->state_bytes;
    for (int i = 0; i < RECOMPUTES; i++) {
        stage->saved_bytes[i] = in_flight * run->saved_bytes[i];
        least = fmin(least, stage->saved_bytes[i]);
    }
    double each = run->state_bytes + (isfinite(least) ? least : 0);
    double blocks = stage->memory_bytes / each * (1 + ROUNDING);
    stage->room = blocks >= run->count ? run->count : (int)fmax(blocks, 0);
}

/* Add an end of the model to the stage; returns the bytes of its state. */
static double add_end(struct stage *stage, struct costs *costs, const struct site *site,
                      struct block_work work, const double *weights)
{
    struct block_times times = block_times_find(costs, site, work, weights);
    stage->end.formula_s += times.formula_s;
    stage->end.least_s += times.least_s;
    for (int i = 0; i < stage->accounts; i++)
        stage->end.accounts_s[i] += times.accounts_s[i];
    return (double)block_times_alone(costs, site->first, work).bytes.state;
}

/* Fill stage `index`; the ones before it are filled. */
static void fill(struct stage *stages, int index, struct costs *costs,
                 const struct space_point *point, const struct site *const *sites,
                 const struct block_run *run)
{
    int last = (int)costs->request->graph->block_count - 1;
    double weights[SITE_RANKS_MAX], bytes = 0;
    const struct site *site = sites[index];
    struct stage *stage = &stages[index];
    const struct block_work first = {0, point->samples, RECOMPUTE_NONE},
                            head = {last, point->samples, RECOMPUTE_NONE};
    struct block_work of_run = {run->last, point->samples, RECOMPUTE_NONE};
    block_times_weights(costs, site, of_run, weights);
    stage->accounts = site->representative_count + 1;
    if (index > 0 && site->kind == sites[index - 1]->kind)
        memcpy(stage->block, stages[index - 1].block, sizeof stage->block);
    else
        for (int i = 0; i < RECOMPUTES; i++) {
            of_run.recompute = isfinite(run->saved_bytes[i]) ? (enum recompute)i : RECOMPUTE_NONE;
            stage->block[i] = block_times_find(costs, site, of_run, weights);
        }
    if (index == 0 && run->last - run->count >= 0)
        bytes += add_end(stage, costs, site, first, weights);
    if (index == point->stages - 1 && run->last < last) {
        double state = add_end(stage, costs, site, head, weights);
        bytes += costs->model.tied ? 0 : state; /* tied weights are counted where they come first */
    }
    find_room(stage, costs, site, point, index, run, bytes);
}

struct unlike_bound unlike_bound(struct costs *costs, const struct space_point *point,
                                 const struct block_run *run)
{
    int count = point->stages, m = point->micro_batches, room = 0;
    struct stage *stages = xcalloc((size_t)count, sizeof *stages);
    const struct site **sites = xcalloc((size_t)count, sizeof *sites);
    struct unlike_bound bound = {INFINITY, INFINITY};
    space_sites(costs, point, sites);
    for (int i = 0; i < count; i++) {
        fill(stages, i, costs, point, sites, run);
        room += stages[i].room;
    }
    if (room >= run->count) {
        double longest_s = find_longest(stages, count, FORMULA, run->count);
        bound.formula_s = find_sum(stages, count, run->count) + (m - 1) * longest_s;
        bound.programs_s = fmax(find_pass(stages, count, m, run->count),
                                m * find_longest(stages, count, PROGRAMS, run->count));
    }
    free(sites);
    free(stages);
    return (struct unlike_bound){bound.formula_s * (1 - ROUNDING),
                                 bound.programs_s * (1 - ROUNDING)};
}
