/* cost_tables.c - numbers the strategies of every place, and writes what they cost alone and
 * combined. */
#include "coordinator/planner/report/cost_tables.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void cost_tables_init(struct cost_tables *tables, struct costs *costs,
                      const struct space_point *point)
{
    *tables = (struct cost_tables){.costs = costs, .point = point};
    tables->sites = xcalloc((size_t)point->stages, sizeof *tables->sites);
    tables->strategies = json_object();
    tables->joints = json_object();
    tables->crossings = json_object();
    space_sites(costs, point, tables->sites);
}

void cost_tables_finish(struct cost_tables *tables)
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

json_t *cost_tables_names(void)
{
    return json_pack("[s,s,s,s,s,s,s,s,s,s]", "forward_s", "backward_s", "once_s", "beside_bytes",
                     "state_bytes", "saved_bytes", "communication_bytes", "forward_bytes",
                     "other_bytes", "passing_bytes");
}

json_t *cost_tables_cost(struct cost_tables *tables, const struct part_cost *cost, int ranks)
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

int cost_tables_block(struct cost_tables *tables, int stage, int block, struct error *err)
{
    const struct cost_column *column;
    return find_column(tables, stage, block, &column, err);
}

int cost_tables_joint(struct cost_tables *tables, int stage, int block, struct error *err)
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

int cost_tables_crossing(struct cost_tables *tables, int stage, int block, struct error *err)
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

int cost_tables_ties(struct cost_tables *tables, json_t *point, struct error *err)
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
