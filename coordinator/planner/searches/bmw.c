/* bmw.c - the bi-objective workflow of Galvatron-BMW (arXiv 2307.02031, section IV), with our
 * costs.
 *
 * Every point is solved by a walk over partitions. It begins with p_m, whose stages are balanced in
 * memory; p_t is balanced in time. For each partition taken from the queue, every stage is planned
 * in isolation; then its slowest stage gives a boundary block to the neighbour on that side. The
 * resulting partition is queued if (1) none of its stages is slower than the slowest was, (2) each
 * fits, and (3) its memory is balanced no worse than p_t's, measured by a_m = 1 - max M / sum M.
 *
 * A stage is planned by dynamic programming over its layers and its memory: layer_dp.h. */
#include "coordinator/planner/searches/bmw.h"

#include "common/base/memory.h"
#include "coordinator/planner/layer_dp.h"
#include "coordinator/planner/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void bmw_balance(int blocks, int stages,
                 double (*size)(const void *context, int stage, int first, int end),
                 const void *context, int *ends)
{
    size_t cells = (size_t)(stages + 1) * (size_t)(blocks + 1);
    /* [stages][blocks]: largest stage of the best partition of so many */
    double *least = xcalloc(cells, sizeof *least);
    int *begin = xcalloc(cells, sizeof *begin);
    for (size_t i = 1; i < cells; i++)
        least[i] = INFINITY;
    for (int i = 1; i <= stages; i++)
        for (int end = i; end <= blocks; end++)
            for (int first = i - 1; first < end; first++) {
                int cell = i * (blocks + 1) + end;
                double most = fmax(least[cell - (blocks + 1) - end + first],
                                   size(context, i - 1, first, end));
                if (most < least[cell]) {
                    least[cell] = most;
                    begin[cell] = first;
                }
            }
    for (int i = stages, end = blocks; i > 0; i--) {
        ends[i - 1] = end;
        end = begin[i * (blocks + 1) + end];
    }
    free(least);
    free(begin);
}

struct waiting_list {
    int *items; /* `stages` ends each; those before `next` have been processed */
    size_t count, capacity, next;
};

static void push(struct waiting_list *queue, const int *ends, int stages)
{
    size_t size = (size_t)stages * sizeof *ends;
    for (size_t i = 0; i < queue->count; i++)
        if (memcmp(&queue->items[i * (size_t)stages], ends, size) == 0)
            return;
    queue->items = grow(queue->items, queue->count, &queue->capacity, size);
    memcpy(&queue->items[queue->count++ * (size_t)stages], ends, size);
}

/* Over all stages: whether each fits, and the slowest. */
struct survey {
    bool fits;
    int slowest;
    double seconds;        /* of the slowest */
    double balance_memory; /* a_m; 0 if not all fit */
};

static struct survey survey(const struct bmw_walk *walk, const int *ends)
{
    struct survey survey = {.fits = true, .seconds = -1};
    double bytes = 0, largest = 0;
    for (int i = 0; i < walk->stages; i++) {
        struct bmw_stage stage = walk->plan(walk->context, i, i ? ends[i - 1] : 0, ends[i]);
        survey.fits = survey.fits && stage.fits;
        if (!stage.fits)
            stage.seconds = INFINITY;
        if (stage.seconds > survey.seconds) {
            survey.seconds = stage.seconds;
            survey.slowest = i;
        }
        bytes += (double)stage.bytes;
        largest = fmax(largest, (double)stage.bytes);
    }
    survey.balance_memory = survey.fits && bytes > 0 ? 1 - largest / bytes : 0;
    return survey;
}

void bmw_walk(const struct bmw_walk *walk, const int *memory_balanced, const int *time_balanced)
{
    struct waiting_list queue = {0};
    double least_balance = survey(walk, time_balanced).balance_memory;
    int stages = walk->stages, *ends = xcalloc((size_t)stages, sizeof *ends);
    push(&queue, memory_balanced, stages);
    while (queue.next < queue.count) {
        memcpy(ends, &queue.items[queue.next++ * (size_t)stages], (size_t)stages * sizeof *ends);
        struct survey old = survey(walk, ends);
        if (old.fits)
            walk->visit(walk->context, ends);
        int slowest = old.slowest, first = slowest ? ends[slowest - 1] : 0;
        for (int side = 0; side < 2 && ends[slowest] - first > 1; side++) {
            int boundary = slowest - 1 + side;
            if (boundary < 0 || boundary == stages - 1)
                continue;
            ends[boundary] += side ? -1 : 1;
            struct survey new = survey(walk, ends);
            if (new.fits &&new.seconds <= old.seconds &&new.balance_memory >= least_balance)
                push(&queue, ends, stages);
            ends[boundary] -= side ? -1 : 1;
        }
    }
    free(ends);
    free(queue.items);
}

struct bmw {
    struct layer_dp dp;
    double best_s;
    struct plan *best;
};

static struct bmw_stage plan_stage(void *context, int stage, int first, int end)
{
    struct bmw *bmw = context;
    struct bmw_stage out = {0};
    out.fits = layer_dp_plan(&bmw->dp, stage, first, end, &out.seconds, &out.bytes, NULL);
    return out;
}

static void judge(void *context, const int *ends)
{
    struct bmw *bmw = context;
    struct instance *instance = bmw->dp.instance;
    struct strategy *strategies = xcalloc((size_t)instance->blocks, sizeof *strategies);
    double seconds;
    uint64_t bytes;
    for (int i = 0; i < instance->point.stages; i++)
        layer_dp_plan(&bmw->dp, i, i ? ends[i - 1] : 0, ends[i], &seconds, &bytes, strategies);
    struct plan *plan = sweep_plan(instance, ends, strategies);
    double step_s = sweep_judge(instance, plan);
    if (step_s < bmw->best_s) {
        bmw->best_s = step_s;
        plan_destroy(bmw->best);
        bmw->best = plan;
    } else {
        plan_destroy(plan);
    }
    free(strategies);
}

/* The block's fastest choice, by which the first partitions are balanced. */
static const struct choice *fastest(const struct instance *instance, int stage, int block)
{
    const struct choices *choices = instance_choices(instance, stage, block);
    const struct choice *best = &choices->items[0];
    for (size_t i = 1; i < choices->count; i++)
        if (layer_seconds(instance, &choices->items[i].cost) < layer_seconds(instance, &best->cost))
            best = &choices->items[i];
    return best;
}

/* Whether blocks [first, end) can form this stage: the first block is on the first stage, the last
 * one on the last. */
static bool may_be(const struct instance *instance, int stage, int first, int end)
{
    return (stage > 0 || first == 0) && (stage == 0 || first > 0) &&
           (end == instance->blocks) == (stage == instance->point.stages - 1);
}

static double size_in_memory(const void *context, int stage, int first, int end)
{
    const struct instance *instance = context;
    double bytes = 0;
    if (!may_be(instance, stage, first, end))
        return INFINITY;
    for (int b = first; b < end; b++)
        bytes += (double)layer_bytes(instance, stage, &fastest(instance, stage, b)->cost);
    return bytes;
}

static double size_in_time(const void *context, int stage, int first, int end)
{
    const struct instance *instance = context;
    double seconds = 0;
    if (!may_be(instance, stage, first, end))
        return INFINITY;
    for (int b = first; b < end; b++)
        seconds += layer_seconds(instance, &fastest(instance, stage, b)->cost);
    return seconds;
}

static struct plan *solve(struct instance *instance)
{
    struct bmw bmw = {.best_s = INFINITY};
    int stages = instance->point.stages;
    struct bmw_walk walk = {stages, &bmw, plan_stage, judge};
    int *balanced = xcalloc(2 * (size_t)stages, sizeof *balanced);
    layer_dp_init(&bmw.dp, instance);
    bmw_balance(instance->blocks, stages, size_in_memory, instance, balanced);
    bmw_balance(instance->blocks, stages, size_in_time, instance, balanced + stages);
    bmw_walk(&walk, balanced, balanced + stages);
    layer_dp_finish(&bmw.dp);
    free(balanced);
    return bmw.best;
}

static int run(const struct planner_request *request, struct planner_result *out, struct error *err)
{
    static const struct sweep sweep = {.name = "bmw", .solve = solve};
    return sweep_run(request, &sweep, out, err);
}

const struct search search_bmw = {.name = "bmw", .run = run};
