/* layer_dp.c - the table of the dynamic program: for each block and strategy, a row of cells by
 * memory. */
#include "coordinator/planner/layer_dp.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>

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

/* The block's cost, with the block that it shares a weight with divided in the same way. */
static struct part_cost cost_of(const struct instance *instance, int stage, int block,
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

double layer_seconds(const struct instance *instance, const struct part_cost *cost)
{
    return instance->point.micro_batches * (cost->forward_s + cost->backward_s) + cost->once_s;
}

uint64_t layer_bytes(const struct instance *instance, int stage, const struct part_cost *cost)
{
    return cost->bytes.state + cost->bytes.communication +
           (uint64_t)instance->slots[stage] * cost->bytes.saved;
}

/* Keep the fastest of each grid cell, and drop those that are larger than another without being
 * faster. Takes ownership of `grid`, which has GRID + 1 entries. */
static struct layer_cells sift(struct layer_cell *grid)
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
static struct layer_cells fill(const struct layer_dp *dp, const struct layer_rows *rows, int block,
                               int index)
{
    struct instance *instance = dp->instance;
    int stage = rows->stage;
    const struct choice *choice = &instance_choices(instance, stage, block)->items[index];
    struct part_cost cost = cost_of(instance, stage, block, choice);
    uint64_t base = layer_bytes(instance, stage, &instance->bases[stage]);
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
        double seconds = layer_seconds(instance, joint) + layer_seconds(instance, &cost);
        uint64_t bytes = layer_bytes(instance, stage, joint) + layer_bytes(instance, stage, &cost);
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
    return sift(grid);
}

static struct layer_rows *find_rows(struct layer_dp *dp, int stage, int first, int end)
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
            rows->of[b][s] = fill(dp, rows, b, (int)s);
    }
    return rows;
}

void layer_dp_finish(struct layer_dp *dp)
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

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The bytes including the largest transient and the largest buffer beside, which the recursion
 * leaves out. */
static uint64_t whole_bytes(struct instance *instance, int stage, int end,
                            const struct layer_cell *cell)
{
    uint64_t transient = instance->bases[stage].bytes.other, bytes = cell->bytes, beside = 0;
    int entry = -1;
    for (int b = end - 1; cell; b--, cell = cell->before) {
        const struct choice *choice = &instance_choices(instance, stage, b)->items[cell->choice];
        struct part_cost cost = cost_of(instance, stage, b, choice);
        const struct part_cost *joint =
            entry < 0 ? NULL : instance_joint(instance, stage, b, choice->exit, entry);
        uint64_t passing = joint ? joint->bytes.passing : 0;
        transient = larger(larger(transient, cost.bytes.other), cost.bytes.forward + passing);
        transient = larger(transient, joint ? joint->bytes.other : 0);
        beside = larger(larger(beside, cost.bytes.beside), joint ? joint->bytes.beside : 0);
        entry = choice->entry;
    }
    return bytes + transient + 2 * beside;
}

/* The fastest final cell that fits including its transients; slower ones are tried in turn. */
static const struct layer_cell *find_cell(struct layer_dp *dp, int stage, int first, int end,
                                          uint64_t *bytes)
{
    const struct layer_rows *rows = find_rows(dp, stage, first, end);
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
        *bytes = whole_bytes(dp->instance, stage, end, cell);
        if (*bytes <= instance_memory(dp->instance, stage)) {
            found = cell;
            break;
        }
    }
    free(left);
    return found;
}

void layer_dp_init(struct layer_dp *dp, struct instance *instance)
{
    *dp = (struct layer_dp){.instance = instance};
}

bool layer_dp_plan(struct layer_dp *dp, int stage, int first, int end, double *seconds,
                   uint64_t *bytes, struct strategy *strategies)
{
    const struct layer_cell *cell = find_cell(dp, stage, first, end, bytes);
    if (!cell)
        return false;
    *seconds = cell->seconds;
    for (int b = end - 1; strategies && cell; b--, cell = cell->before)
        strategies[b] = instance_choices(dp->instance, stage, b)->items[cell->choice].strategy;
    return true;
}
