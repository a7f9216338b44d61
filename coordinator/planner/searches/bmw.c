/* bmw.c - the bi-objective workflow of Galvatron-BMW (arXiv 2307.02031, section IV), with our
 * costs.
 *
 * Every point is solved by a walk over partitions. It begins with p_m, whose stages are balanced in
 * memory; p_t is balanced in time. For each partition taken from the queue, every stage is planned
 * in isolation; then its slowest stage gives a boundary block to the neighbour on that side. The
 * resulting partition is queued if (1) none of its stages is slower than the slowest was, (2) each
 * fits, and (3) its memory is balanced no worse than p_t's, measured by a_m = 1 - max M / sum M.
 *
 * A stage is planned in isolation as Galvatron does it (arXiv 2211.13878, section 3.3), by dynamic
 * programming over its blocks, the memory used, and the last block's strategy:
 *
 * F(l, e, s) = min over s' of F(l - 1, e - O(l, s), s') + R(s', s) + c(l, s), where O is the memory
 * that remains in use after the forward pass. The result is then checked including what the
 * backward pass needs besides. Seconds are of the stage's whole step. e is discretized by a grid
 * over the stage's memory, but each cell keeps its exact bytes.
 *
 * If the first and the last block share a weight, each is priced as if the other were divided in
 * the same way. Traffic between stages is left out; it counts when the whole plan is judged. */
#include "coordinator/planner/searches/bmw.h"

#include "common/base/memory.h"
#include "coordinator/planner/searches/searches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GRID 128

/* F(l, e, s) for one e: its value, and the cell that it came from. */
struct layer_cell {
    double seconds;
    uint64_t bytes;
    int choice;
    const struct layer_cell *before; /* cell of the preceding block; NULL for the first block */
};

struct layer_cells {
    struct layer_cell *items; /* in order of bytes; each is faster than those before it */
    size_t count;
};

/* All cells for stages that begin with this block, computed as far as requested. */
struct layer_rows {
    int stage, first;
    struct layer_cells **of; /* [block][choice]; NULL: not computed yet */
    struct layer_rows *next;
};

/* Results are shared by calls for stages that begin with the same block. */
struct layer_dp {
    struct instance *instance;
    struct layer_rows *rows;
};

/* The block's cost, with the block that it shares a weight with divided in the same way. */
static struct part_cost layer_cost(const struct instance *instance, int stage, int block,
                                   const struct choice *choice)
{
    int last = instance->blocks - 1, stages = instance->point.stages;
    struct part_cost cost = choice->cost;
    struct tie tie = {instance->sites[stages - 1 - stage], &choice->strategy};
    if (instance->costs->model.tied && (block == 0 || block == last) &&
        tie.site->mesh.axes == instance->sites[stage]->mesh.axes &&
        costs_block(instance->costs, instance->sites[stage], block, &choice->strategy, &tie,
                    instance->point.samples, &cost, NULL) < 0)
        return choice->cost;
    return cost;
}

/* Keep the fastest of each grid cell, and drop those that are larger than another without being
 * faster. Takes ownership of `grid`, which has GRID + 1 entries. */
static struct layer_cells layer_sift(struct layer_cell *grid)
{
    struct layer_cells cells = {grid, 0};
    double fastest = INFINITY;
    for (int e = 0; e <= GRID; e++)
        if (grid[e].seconds < fastest) {
            fastest = grid[e].seconds;
            grid[cells.count++] = grid[e];
        }
    return cells;
}

/* Compute one choice's row by extending every cell of the preceding block. */
static struct layer_cells layer_fill(const struct layer_dp *dp, const struct layer_rows *rows,
                                     int block, int index)
{
    struct instance *instance = dp->instance;
    int stage = rows->stage;
    const struct choice *choice = &instance_choices(instance, stage, block)->items[index];
    struct part_cost cost = layer_cost(instance, stage, block, choice);
    uint64_t base = sweep_bytes(instance, stage, &instance->bases[stage]);
    uint64_t limit = instance_memory(instance, stage);
    struct layer_cell *grid = xcalloc(GRID + 1, sizeof *grid);
    const struct choices *before =
        block > rows->first ? instance_choices(instance, stage, block - 1) : NULL;
    for (int e = 0; e <= GRID; e++)
        grid[e].seconds = INFINITY;
    for (size_t s = 0; s < (before ? before->count : 1); s++) {
        static const struct part_cost none;
        static const struct layer_cell start;
        const struct layer_cells *from = before ? &rows->of[block - 1][s] : NULL;
        const struct part_cost *joint =
            before
                ? instance_joint(instance, stage, block - 1, before->items[s].exit, choice->entry)
                : &none;
        double seconds = sweep_seconds(instance, joint) + sweep_seconds(instance, &cost);
        uint64_t bytes = sweep_bytes(instance, stage, joint) + sweep_bytes(instance, stage, &cost);
        for (size_t i = 0; i < (from ? from->count : 1); i++) {
            const struct layer_cell *old = from ? &from->items[i] : &start;
            struct layer_cell new = {old->seconds + seconds, (from ? old->bytes : base) + bytes,
                                     index, from ? old : NULL};
            if (new.bytes > limit)
                continue;
            struct layer_cell *place = &grid[(size_t)((double)new.bytes / (double)limit *GRID)];
            if (new.seconds < place->seconds ||
                (new.seconds == place->seconds &&new.bytes < place->bytes))
                *place = new;
        }
    }
    return layer_sift(grid);
}

static struct layer_rows *layer_rows_of(struct layer_dp *dp, int stage, int first, int end)
{
    struct instance *instance = dp->instance;
    struct layer_rows *rows = dp->rows;
    while (rows && (rows->stage != stage || rows->first != first))
        rows = rows->next;
    if (!rows) {
        rows = xcalloc(1, sizeof *rows);
        *rows = (struct layer_rows){stage, first, NULL, dp->rows};
        rows->of = xcalloc((size_t)instance->blocks, sizeof *rows->of);
        dp->rows = rows;
    }
    for (int b = first; b < end; b++) {
        if (rows->of[b])
            continue;
        size_t count = instance_choices(instance, stage, b)->count;
        rows->of[b] = xcalloc(count, sizeof **rows->of);
        for (size_t s = 0; s < count; s++)
            rows->of[b][s] = layer_fill(dp, rows, b, (int)s);
    }
    return rows;
}

static uint64_t layer_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The bytes including the largest transient and the largest buffer beside, which the recursion
 * leaves out. */
static uint64_t layer_whole_bytes(struct instance *instance, int stage, int end,
                                  const struct layer_cell *cell)
{
    uint64_t transient = instance->bases[stage].bytes.other, bytes = cell->bytes, beside = 0;
    int entry = -1;
    for (int b = end - 1; cell; b--, cell = cell->before) {
        const struct choice *choice = &instance_choices(instance, stage, b)->items[cell->choice];
        struct part_cost cost = layer_cost(instance, stage, b, choice);
        const struct part_cost *joint =
            entry < 0 ? NULL : instance_joint(instance, stage, b, choice->exit, entry);
        uint64_t passing = joint ? joint->bytes.passing : 0;
        transient =
            layer_larger(layer_larger(transient, cost.bytes.other), cost.bytes.forward + passing);
        transient = layer_larger(transient, joint ? joint->bytes.other : 0);
        beside =
            layer_larger(layer_larger(beside, cost.bytes.beside), joint ? joint->bytes.beside : 0);
        entry = choice->entry;
    }
    return bytes + transient + 2 * beside;
}

/* The fastest final cell that fits including its transients; slower ones are tried in turn. */
static const struct layer_cell *layer_find(struct layer_dp *dp, int stage, int first, int end,
                                           uint64_t *bytes)
{
    const struct layer_rows *rows = layer_rows_of(dp, stage, first, end);
    size_t count = instance_choices(dp->instance, stage, end - 1)->count;
    /* cells not tried yet; the last ones are the fastest */
    size_t *left = xcalloc(count, sizeof *left);
    const struct layer_cell *found = NULL;
    for (size_t s = 0; s < count; s++)
        left[s] = rows->of[end - 1][s].count;
    for (;;) {
        size_t fastest = count;
        for (size_t s = 0; s < count; s++)
            if (left[s] > 0 && (fastest == count ||
                                rows->of[end - 1][s].items[left[s] - 1].seconds <
                                    rows->of[end - 1][fastest].items[left[fastest] - 1].seconds))
                fastest = s;
        if (fastest == count)
            break;
        const struct layer_cell *cell = &rows->of[end - 1][fastest].items[--left[fastest]];
        *bytes = layer_whole_bytes(dp->instance, stage, end, cell);
        if (*bytes <= instance_memory(dp->instance, stage)) {
            found = cell;
            break;
        }
    }
    free(left);
    return found;
}

/* Plan blocks [first, end) on the stage. On success sets the seconds and bytes of the stage and, if
 * not NULL, fills strategies by block index. Returns false if nothing fits. */
static bool layer_plan(struct layer_dp *dp, int stage, int first, int end, double *seconds,
                       uint64_t *bytes, struct strategy *strategies)
{
    const struct layer_cell *cell = layer_find(dp, stage, first, end, bytes);
    if (!cell)
        return false;
    *seconds = cell->seconds;
    for (int b = end - 1; strategies && cell; b--, cell = cell->before)
        strategies[b] = instance_choices(dp->instance, stage, b)->items[cell->choice].strategy;
    return true;
}

static void layer_finish(struct layer_dp *dp)
{
    for (struct layer_rows *rows = dp->rows, *next; rows; rows = next) {
        next = rows->next;
        for (int b = rows->first; b < dp->instance->blocks && rows->of[b]; b++) {
            size_t count = instance_choices(dp->instance, rows->stage, b)->count;
            for (size_t s = 0; s < count; s++)
                free(rows->of[b][s].items);
            free(rows->of[b]);
        }
        free(rows->of);
        free(rows);
    }
}

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

static void bmw_push(struct waiting_list *queue, const int *ends, int stages)
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

static struct survey bmw_survey(const struct bmw_walk *walk, const int *ends)
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
    double least_balance = bmw_survey(walk, time_balanced).balance_memory;
    int stages = walk->stages, *ends = xcalloc((size_t)stages, sizeof *ends);
    bmw_push(&queue, memory_balanced, stages);
    while (queue.next < queue.count) {
        memcpy(ends, &queue.items[queue.next++ * (size_t)stages], (size_t)stages * sizeof *ends);
        struct survey old = bmw_survey(walk, ends);
        if (old.fits)
            walk->visit(walk->context, ends);
        int slowest = old.slowest, first = slowest ? ends[slowest - 1] : 0;
        for (int side = 0; side < 2 && ends[slowest] - first > 1; side++) {
            int boundary = slowest - 1 + side;
            if (boundary < 0 || boundary == stages - 1)
                continue;
            ends[boundary] += side ? -1 : 1;
            struct survey new = bmw_survey(walk, ends);
            if (new.fits &&new.seconds <= old.seconds &&new.balance_memory >= least_balance)
                bmw_push(&queue, ends, stages);
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

static struct bmw_stage bmw_plan_stage(void *context, int stage, int first, int end)
{
    struct bmw *bmw = context;
    struct bmw_stage out = {0};
    out.fits = layer_plan(&bmw->dp, stage, first, end, &out.seconds, &out.bytes, NULL);
    return out;
}

static void bmw_judge(void *context, const int *ends)
{
    struct bmw *bmw = context;
    struct instance *instance = bmw->dp.instance;
    struct strategy *strategies = xcalloc((size_t)instance->blocks, sizeof *strategies);
    double seconds;
    uint64_t bytes;
    for (int i = 0; i < instance->point.stages; i++)
        layer_plan(&bmw->dp, i, i ? ends[i - 1] : 0, ends[i], &seconds, &bytes, strategies);
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
static const struct choice *bmw_fastest(const struct instance *instance, int stage, int block)
{
    const struct choices *choices = instance_choices(instance, stage, block);
    const struct choice *best = &choices->items[0];
    for (size_t i = 1; i < choices->count; i++)
        if (sweep_seconds(instance, &choices->items[i].cost) < sweep_seconds(instance, &best->cost))
            best = &choices->items[i];
    return best;
}

/* Whether blocks [first, end) can form this stage: the first block is on the first stage, the last
 * one on the last. */
static bool bmw_may_be(const struct instance *instance, int stage, int first, int end)
{
    return (stage > 0 || first == 0) && (stage == 0 || first > 0) &&
           (end == instance->blocks) == (stage == instance->point.stages - 1);
}

static double bmw_size_in_memory(const void *context, int stage, int first, int end)
{
    const struct instance *instance = context;
    double bytes = 0;
    if (!bmw_may_be(instance, stage, first, end))
        return INFINITY;
    for (int b = first; b < end; b++)
        bytes += (double)sweep_bytes(instance, stage, &bmw_fastest(instance, stage, b)->cost);
    return bytes;
}

static double bmw_size_in_time(const void *context, int stage, int first, int end)
{
    const struct instance *instance = context;
    double seconds = 0;
    if (!bmw_may_be(instance, stage, first, end))
        return INFINITY;
    for (int b = first; b < end; b++)
        seconds += sweep_seconds(instance, &bmw_fastest(instance, stage, b)->cost);
    return seconds;
}

static struct plan *bmw_solve(struct instance *instance)
{
    struct bmw bmw = {.dp.instance = instance, .best_s = INFINITY};
    int stages = instance->point.stages;
    struct bmw_walk walk = {stages, &bmw, bmw_plan_stage, bmw_judge};
    int *balanced = xcalloc(2 * (size_t)stages, sizeof *balanced);
    bmw_balance(instance->blocks, stages, bmw_size_in_memory, instance, balanced);
    bmw_balance(instance->blocks, stages, bmw_size_in_time, instance, balanced + stages);
    bmw_walk(&walk, balanced, balanced + stages);
    layer_finish(&bmw.dp);
    free(balanced);
    return bmw.best;
}

struct plan *bmw_isolated(struct instance *instance, const int *ends)
{
    struct bmw bmw = {.dp.instance = instance, .best_s = INFINITY};
    struct bmw_walk walk = {instance->point.stages, &bmw, bmw_plan_stage, bmw_judge};
    if (bmw_survey(&walk, ends).fits)
        bmw_judge(&bmw, ends);
    layer_finish(&bmw.dp);
    return bmw.best;
}

static int bmw_search(const struct planner_request *request, struct planner_result *out,
                      struct error *err)
{
    static const struct sweep sweep = {.name = "bmw", .solve = bmw_solve};
    return sweep_run(request, &sweep, out, err);
}

const struct search search_bmw = {.name = "bmw", .run = bmw_search};
