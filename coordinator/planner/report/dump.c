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
#include "coordinator/planner/report/dump.h"

#include "coordinator/planner/report/cost_tables.h"
#include "coordinator/planner/shared_cores.h"

#include <errno.h>
#include <stdlib.h>

#define COSTS_MAX 3000000

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
    struct planner_request ask = *request;
    size_t count;
    int least, most;
    planner_limits(request, &least, &most);
    shared_cores_init(&used, request->devices, most);
    ask.devices = used.devices;
    ask.device_count = most;
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
