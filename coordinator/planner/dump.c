/* dump.c - costs as JSON, all that the formula sees:
 *
 *   kind           "Costs"
 *   cost           names of a cost's members, in order; a cost is an array of them: bytes of any
 *                  rank, or where ranks are told apart and have unlike ones, all seven of the first
 *                  rank, then of the second, and so on
 *   blocks         per block of the model its name, its place (blocks of one place have the same
 *                  strategies and costs) and its joint (to the next block; likewise)
 *   tied           the last block uses a weight of the first one
 *   points         per point devices, micro_batches, samples (of a micro-batch), schedule, and
 *
 *     stages         per stage its kind of site, slots (micro-batches in flight), memory_bytes
 *                    (of each rank that is told apart; or one number: of any rank), and base (the
 *                    cost of a rank without blocks)
 *     strategies     "KIND/PLACE": per strategy its roles, one per axis; vector, the number of
 *                    these roles; zero; recompute; class, the number of (vector, zero); cost
 *     joints         "KIND/JOINT": [vector before][vector after], a cost or null: not possible
 *     crossings      "STAGE/JOINT", of the block before, which ends the stage: the same for what
 *                    the stage pays (out) and what the next one does (into)
 *     tied_last      [class of the first block][strategy of the last]: its cost beside it
 *     tied_first     [vector of the last block][strategy of the first]; null with one stage
 *
 * A stage runs the blocks of an interval; all blocks are divided among the stages in their order.
 * Of a stage, over its base, blocks, inner joints and crossings, F, B and once are sums. T is
 * F + B. On each rank bytes are state + slots x saved + communication, summed; twice the largest
 * beside; and the largest of: any forward, any other, and a block's forward and the passing of the
 * joint or crossing after it. A plan fits if no rank has more than its memory_bytes; its step is
 * sum T + (micro_batches - 1) max T + max (once - sum of B of the stages before). */
#include "coordinator/planner/dump.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/shared_cores.h"
#include "coordinator/planner/space/space.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define COSTS_MAX 3000000

/* Strategies of the blocks of one place on one kind of site. Those with equal roles are adjacent,
 * and among these those with equal zero. */
struct cost_column {
    int kind, place;
    struct strategy *items;
    size_t count;
    int *vector, *class;  /* per item */
    size_t *vector_first; /* [vector]: an item that has it */
    size_t *class_first;  /* [class]: an item that has it */
    int vectors, classes;
};

/* The costs of one point's parts as tables: of blocks by their strategies, of joints between two
 * blocks by the roles of both, and of blocks that share a weight by the strategies of both. */
struct cost_tables {
    struct costs *costs; /* lent, as is the point */
    const struct space_point *point;
    const struct site **sites; /* per stage */
    struct cost_column **columns;
    size_t column_count, column_capacity;
    size_t written; /* costs written so far */
    json_t *strategies, *joints, *crossings;
};

static void cost_tables_init(struct cost_tables *tables, struct costs *costs,
                             const struct space_point *point)
{
    *tables = (struct cost_tables){.costs = costs, .point = point};
    tables->sites = xcalloc((size_t)point->stages, sizeof *tables->sites);
    tables->strategies = json_object();
    tables->joints = json_object();
    tables->crossings = json_object();
    space_sites(costs, point, tables->sites);
}

static void cost_tables_finish(struct cost_tables *tables)
{
    for (size_t i = 0; i < tables->column_count; i++) {
        free(tables->columns[i]->items);
        free(tables->columns[i]->vector);
        free(tables->columns[i]->class);
        free(tables->columns[i]->vector_first);
        free(tables->columns[i]->class_first);
        free(tables->columns[i]);
    }
    free(tables->columns);
    free(tables->sites);
    json_decref(tables->strategies);
    json_decref(tables->joints);
    json_decref(tables->crossings);
}

static void append_bytes(json_t *list, const struct part_bytes *bytes)
{
    const uint64_t numbers[] = {bytes->beside,  bytes->state, bytes->saved,  bytes->communication,
                                bytes->forward, bytes->other, bytes->passing};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_array_append_new(list, json_integer((json_int_t)numbers[i]));
}

/* The names of a cost's members; the caller owns the array. */
static json_t *cost_tables_names(void)
{
    return json_pack("[s,s,s,s,s,s,s,s,s,s]", "forward_s", "backward_s", "once_s", "beside_bytes",
                     "state_bytes", "saved_bytes", "communication_bytes", "forward_bytes",
                     "other_bytes", "passing_bytes");
}

/* A cost, which the caller owns. ranks: how many the site tells apart. */
static json_t *cost_tables_cost(struct cost_tables *tables, const struct part_cost *cost, int ranks)
{
    json_t *list = json_pack("[f,f,f]", cost->forward_s, cost->backward_s, cost->once_s);
    tables->written++;
    for (int rank = 0; rank < (cost->ranks ? ranks : 1); rank++)
        append_bytes(list, part_cost_bytes(cost, rank));
    return list;
}

static json_t *encode_strategy(const struct cost_column *column, size_t index, int axes)
{
    const struct strategy *strategy = &column->items[index];
    json_t *names = json_array();
    for (int axis = 0; axis < axes; axis++)
        json_array_append_new(names, json_string(strategy->roles[axis]->name));
    return json_pack("{s:o, s:i, s:i, s:s, s:i}", "roles", names, "vector", column->vector[index],
                     "zero", strategy->zero, "recompute", recompute_names[strategy->recompute],
                     "class", column->class[index]);
}

static void number_items(struct cost_column *column)
{
    column->vector = xcalloc(column->count, sizeof *column->vector);
    column->class = xcalloc(column->count, sizeof *column->class);
    column->vector_first = xcalloc(column->count, sizeof *column->vector_first);
    column->class_first = xcalloc(column->count, sizeof *column->class_first);
    for (size_t i = 0; i < column->count; i++) {
        const struct strategy *one = &column->items[i];
        bool vector = i == 0 || memcmp(one->roles, one[-1].roles, sizeof one->roles) != 0;
        if (vector)
            column->vector_first[column->vectors++] = i;
        if (vector || one->zero != one[-1].zero)
            column->class_first[column->classes++] = i;
        column->vector[i] = column->vectors - 1;
        column->class[i] = column->classes - 1;
    }
}

/* The column of a block on a stage; its costs are written on first use. */
static int find_column(struct cost_tables *tables, int stage, int block,
                       const struct cost_column **out, struct error *err)
{
    const struct site *site = tables->sites[stage];
    int place = tables->costs->model.place[block], rc = 0;
    int64_t samples = tables->point->samples;
    for (size_t i = 0; i < tables->column_count; i++)
        if (tables->columns[i]->kind == site->kind && tables->columns[i]->place == place) {
            *out = tables->columns[i];
            return 0;
        }
    tables->columns = grow(tables->columns, tables->column_count, &tables->column_capacity,
                           sizeof *tables->columns);
    struct cost_column *column = tables->columns[tables->column_count++] =
        xcalloc(1, sizeof *column);
    column->kind = site->kind;
    column->place = place;
    column->items = space_strategies(tables->costs, site, block, samples, &column->count, NULL);
    number_items(column);
    char key[32];
    json_t *list = json_array();
    snprintf(key, sizeof key, "%d/%d", site->kind, place);
    json_object_set_new(tables->strategies, key, list);
    for (size_t i = 0; i < column->count && rc == 0; i++) {
        struct part_cost cost = {0};
        json_t *strategy = encode_strategy(column, i, site->mesh.axes);
        rc = costs_block(tables->costs, site, block, &column->items[i], NULL, samples, &cost, err);
        json_object_set_new(strategy, "cost", cost_tables_cost(tables, &cost, site->ranks));
        json_array_append_new(list, strategy);
    }
    *out = column;
    return rc;
}

/* side: of a crossing; -1: inside a stage. */
static json_t *encode_joints(struct cost_tables *tables, int stage, int block, int side,
                             const struct cost_column *before, const struct cost_column *after)
{
    json_t *rows = json_array();
    int ranks = tables->sites[side == 1 ? stage + 1 : stage]->ranks;
    for (int x = 0; x < before->vectors; x++) {
        json_t *row = json_array();
        for (int y = 0; y < after->vectors; y++) {
            struct part_cost cost;
            const struct strategy *a = &before->items[before->vector_first[x]],
                                  *b = &after->items[after->vector_first[y]];
            int rc = side < 0 ? costs_joint(tables->costs, tables->sites[stage], block, a, b,
                                            tables->point->samples, &cost, NULL)
                              : costs_crossing(tables->costs, &tables->sites[stage], block, a, b,
                                               tables->point->samples, side, &cost, NULL);
            json_array_append_new(row,
                                  rc < 0 ? json_null() : cost_tables_cost(tables, &cost, ranks));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

/* Write the costs of a block on a stage; below, of its joint to the next block there, and of its
 * crossing to the next block, which begins the next stage. What strategies, joints or crossings
 * contain already is not written again. Errors as of costs_block(). */
static int cost_tables_block(struct cost_tables *tables, int stage, int block, struct error *err)
{
    const struct cost_column *column;
    return find_column(tables, stage, block, &column, err);
}

static int cost_tables_joint(struct cost_tables *tables, int stage, int block, struct error *err)
{
    char key[32];
    const struct cost_column *before, *after;
    snprintf(key, sizeof key, "%d/%d", tables->sites[stage]->kind,
             tables->costs->model.before[block]);
    if (json_object_get(tables->joints, key))
        return 0;
    int rc = find_column(tables, stage, block, &before, err);
    if (rc == 0)
        rc = find_column(tables, stage, block + 1, &after, err);
    if (rc == 0)
        json_object_set_new(tables->joints, key,
                            encode_joints(tables, stage, block, -1, before, after));
    return rc;
}

static int cost_tables_crossing(struct cost_tables *tables, int stage, int block, struct error *err)
{
    char key[32];
    const struct cost_column *before, *after;
    snprintf(key, sizeof key, "%d/%d", stage, tables->costs->model.before[block]);
    if (json_object_get(tables->crossings, key))
        return 0;
    int rc = find_column(tables, stage, block, &before, err);
    if (rc == 0)
        rc = find_column(tables, stage + 1, block + 1, &after, err);
    if (rc == 0)
        json_object_set_new(tables->crossings, key,
                            json_pack("{s:o, s:o}", "out",
                                      encode_joints(tables, stage, block, 0, before, after), "into",
                                      encode_joints(tables, stage, block, 1, before, after)));
    return rc;
}

/* Every strategy of `column`, whose block is on the stage, next to each of the partner's strategies
 * in `likes`, which represent all. */
static json_t *encode_ties(struct cost_tables *tables, int stage, int block,
                           const struct cost_column *column, const struct cost_column *partner,
                           const size_t *likes, int count)
{
    const struct site *const *sites = tables->sites;
    json_t *rows = json_array();
    for (int like = 0; like < count; like++) {
        struct tie tie = {sites[tables->point->stages - 1 - stage], &partner->items[likes[like]]};
        json_t *row = json_array();
        for (size_t i = 0; i < column->count; i++) {
            struct part_cost cost;
            int rc = costs_block(tables->costs, sites[stage], block, &column->items[i], &tie,
                                 tables->point->samples, &cost, NULL);
            json_array_append_new(
                row, rc < 0 ? json_null() : cost_tables_cost(tables, &cost, sites[stage]->ranks));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

/* Set tied_last and tied_first in the point's object; only for models whose last block uses a
 * weight of the first. Errors as of costs_block(). */
static int cost_tables_ties(struct cost_tables *tables, json_t *point, struct error *err)
{
    int last = (int)tables->costs->request->graph->block_count - 1, end = tables->point->stages - 1;
    const struct cost_column *firsts, *lasts;
    int rc = find_column(tables, 0, 0, &firsts, err);
    if (rc == 0)
        rc = find_column(tables, end, last, &lasts, err);
    if (rc != 0)
        return rc;
    json_object_set_new(
        point, "tied_last",
        encode_ties(tables, end, last, lasts, firsts, firsts->class_first, firsts->classes));
    json_object_set_new(
        point, "tied_first",
        end ? encode_ties(tables, 0, 0, firsts, lasts, lasts->vector_first, lasts->vectors)
            : json_null());
    return 0;
}

struct dump {
    struct costs costs;
    size_t written; /* costs written so far */
};

/* Whether the block may be on the stage. */
static bool may_lie(const struct cost_tables *tables, int stage, int block)
{
    int blocks = (int)tables->costs->request->graph->block_count, stages = tables->point->stages;
    return block >= stage && blocks - block >= stages - stage && (stage == 0 || block > 0) &&
           (stage == stages - 1 || block < blocks - 1);
}

/* Write the block on the stage, and what may join it to the next one. */
static int dump_block(struct cost_tables *tables, int stage, int block, struct error *err)
{
    int rc = cost_tables_block(tables, stage, block, err);
    if (rc == 0 && block + 1 < (int)tables->costs->request->graph->block_count &&
        may_lie(tables, stage, block + 1))
        rc = cost_tables_joint(tables, stage, block, err);
    if (rc == 0 && stage + 1 < tables->point->stages && may_lie(tables, stage + 1, block + 1))
        rc = cost_tables_crossing(tables, stage, block, err);
    return rc;
}

static int dump_stage(struct cost_tables *tables, int stage, json_t *stages, struct error *err)
{
    const struct space_point *point = tables->point;
    const struct site *site = tables->sites[stage];
    struct part_cost base = {0};
    int rc = costs_base(tables->costs, site, point->devices, &base, err);
    json_t *memory = json_array();
    for (int rank = 0; rank < site->ranks; rank++)
        json_array_append_new(memory, json_integer((json_int_t)site->limits[rank]));
    json_array_append_new(
        stages,
        json_pack("{s:i, s:i, s:o, s:o}", "kind", site->kind, "slots",
                  point->schedule->in_flight(stage, point->stages, point->micro_batches),
                  "memory_bytes", memory, "base", cost_tables_cost(tables, &base, site->ranks)));
    for (int b = 0; b < (int)tables->costs->request->graph->block_count && rc == 0; b++)
        if (may_lie(tables, stage, b))
            rc = dump_block(tables, stage, b, err);
    return rc;
}

static int dump_point(struct dump *dump, const struct space_point *point, json_t *points,
                      struct error *err)
{
    struct cost_tables tables;
    json_t *stages = json_array();
    int rc = 0;
    cost_tables_init(&tables, &dump->costs, point);
    json_t *json =
        json_pack("{s:i, s:i, s:I, s:s, s:o, s:O, s:O, s:O}", "devices", point->devices,
                  "micro_batches", point->micro_batches, "samples", (json_int_t)point->samples,
                  "schedule", point->schedule->name, "stages", stages, "strategies",
                  tables.strategies, "joints", tables.joints, "crossings", tables.crossings);
    json_array_append_new(points, json);
    for (int i = 0; i < point->stages && rc == 0; i++)
        rc = dump_stage(&tables, i, stages, err);
    if (rc == 0 && dump->costs.model.tied)
        rc = cost_tables_ties(&tables, json, err);
    dump->written += tables.written;
    cost_tables_finish(&tables);
    if (rc == 0 && dump->written > COSTS_MAX)
        return error_set(err, -EINVAL,
                         "more than %d costs of parts: pin or forbid something, or allow fewer "
                         "devices",
                         COSTS_MAX);
    return rc;
}

static json_t *encode_blocks(const struct dump *dump)
{
    const struct graph *graph = dump->costs.request->graph;
    json_t *blocks = json_array();
    for (size_t b = 0; b < graph->block_count; b++)
        json_array_append_new(blocks, json_pack("{s:s, s:i, s:i}", "name", graph->blocks[b].name,
                                                "place", dump->costs.model.place[b], "joint",
                                                dump->costs.model.before[b]));
    return blocks;
}

static int write_points(struct dump *dump, const struct space_point *points, size_t count,
                        FILE *out, struct error *err)
{
    json_t *list = json_array();
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = dump_point(dump, &points[i], list, err);
    json_t *root =
        json_pack("{s:s, s:o, s:o, s:b, s:o}", "kind", "Costs", "cost", cost_tables_names(),
                  "blocks", encode_blocks(dump), "tied", dump->costs.model.tied, "points", list);
    if (rc == 0 && (json_dumpf(root, out, JSON_COMPACT) < 0 || fputc('\n', out) == EOF))
        rc = error_set(err, -EIO, "the costs cannot be written");
    json_decref(root);
    return rc;
}

int planner_dump(const struct planner_request *request, FILE *out, struct error *err)
{
    struct dump dump = {0};
    struct shared_cores used;
    size_t count;
    int least, most;
    planner_limits(request, &least, &most);
    shared_cores_init(&used, request->devices, most);
    struct planner_request ask = shared_cores_ask(request, &used);
    int rc = costs_init(&dump.costs, &ask, err);
    if (rc < 0) {
        shared_cores_finish(&used);
        return rc;
    }
    struct space_point *points = space_points(&ask, least, most, &count);
    rc = count > 0 ? write_points(&dump, points, count, out, err)
                   : error_set(err, -EINVAL, "no point agrees with plan.pin and plan.forbid");
    free(points);
    costs_finish(&dump.costs);
    shared_cores_finish(&used);
    return rc;
}
