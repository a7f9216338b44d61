/* encode.c - writes a plan as JSON, the stable output format of `gimbal plan -o json`.
 *
 * Units are bytes and seconds. Derived members (dp, tp, sp, shares) are for readers; decode.c
 * ignores them. */
#include "common/plan/plan.h"

#include <jansson.h>
#include <string.h>

static json_t *encode_stage(const struct plan_stage *stage)
{
    json_t *axes = json_array(), *devices = json_array();
    for (int i = 0; i < stage->mesh.axes; i++)
        json_array_append_new(axes, json_integer(stage->mesh.size[i]));
    for (int i = 0; stage->devices && i < mesh_count(&stage->mesh); i++)
        json_array_append_new(devices, json_string(stage->devices[i]));
    json_t *out = json_pack("{s:o, s:o, s:f, s:I}", "devices", devices, "axes", axes, "time_s",
                            stage->time_s, "memory_bytes", (json_int_t)stage->memory_bytes);
    if (stage->weights) {
        json_t *weights = json_array();
        for (int i = 0; i < mesh_count(&stage->mesh); i++)
            json_array_append_new(weights, json_integer(stage->weights[i]));
        json_object_set_new(out, "weights", weights);
    }
    return out;
}

/* How many samples of a micro-batch each rank of the stage works on. */
static json_t *encode_shares(const struct plan *plan, int block)
{
    const struct mesh *mesh = &plan->stages[plan->blocks[block].stage].mesh;
    struct shape shape = {.dims = 1, .dim = "b", .size = {plan->micro_batch_samples}};
    struct placement batch = {0};
    for (int axis = mesh->axes - 1; axis >= 0; axis--)
        if (strcmp(plan->blocks[block].roles[axis]->name, "batch") == 0)
            placement_append(&batch, 0, axis);
    json_t *shares = json_array();
    for (int rank = 0; rank < mesh_count(mesh); rank++) {
        struct box box = placement_slice(mesh, &shape, &batch, rank);
        json_array_append_new(shares, json_integer(box_count(&box)));
    }
    return shares;
}

static json_t *encode_block(const struct plan *plan, const struct graph *graph, int index)
{
    const struct plan_block *block = &plan->blocks[index];
    json_t *names = json_array();
    for (int axis = 0; axis < plan->stages[block->stage].mesh.axes; axis++)
        json_array_append_new(names, json_string(block->roles[axis]->name));
    return json_pack("{s:s, s:i, s:o, s:i, s:i, s:i, s:o, s:i, s:s}", "name",
                     graph->blocks[index].name, "stage", block->stage, "roles", names, "dp",
                     plan_degree(plan, index, (const char *[]){"batch", NULL}), "tp",
                     plan_degree(plan, index, (const char *[]){"tensor", "tensor_seq", NULL}), "sp",
                     plan_degree(plan, index, (const char *[]){"ulysses", "context", NULL}),
                     "shares", encode_shares(plan, index), "zero", block->zero, "recompute",
                     recompute_names[block->recompute]);
}

/* Members that only some searches fill in. */
static void add_predictions(json_t *root, const struct plan *plan)
{
    json_t *frontier = json_array();
    json_object_set_new(root, "balance",
                        json_pack("{s:f, s:f}", "time", plan->predicted.balance_time, "memory",
                                  plan->predicted.balance_memory));
    for (int i = 0; i < plan->predicted.alternative_count; i++) {
        const struct plan_alternative *other = &plan->predicted.alternatives[i];
        json_array_append_new(
            frontier, json_pack("{s:s, s:f, s:I, s:i}", "id", other->id, "step_time_s",
                                other->step_time_s, "memory_bytes_max",
                                (json_int_t)other->memory_bytes_max, "devices", other->devices));
    }
    json_object_set_new(root, "frontier", frontier);
    if (plan->predicted.formula_s > 0)
        json_object_set_new(json_object_get(root, "predicted"), "formula_time_s",
                            json_real(plan->predicted.formula_s));
    if (plan->predicted.copies_time_s > 0)
        json_object_set_new(json_object_get(root, "predicted"), "copies_time_s",
                            json_real(plan->predicted.copies_time_s));
    if (plan->predicted.lower_bound_s > 0)
        json_object_set_new(root, "certificate",
                            json_pack("{s:f, s:f, s:f, s:s}", "formula_gap",
                                      plan->predicted.formula_gap, "lower_bound_s",
                                      plan->predicted.lower_bound_s, "gap", plan->predicted.gap,
                                      "roles", plan->predicted.roles));
}

char *plan_encode(const struct plan *plan, const struct graph *graph)
{
    json_t *stages = json_array(), *blocks = json_array();
    for (int i = 0; i < plan->stage_count; i++) {
        json_t *stage = encode_stage(&plan->stages[i]);
        /* Count repeated layers only: without the embedding and the head. */
        int low = plan->stages[i].block_first - 1,
            high = plan->stages[i].block_first + plan->stages[i].block_count - 1;
        int layers = plan->block_count - 2;
        json_object_set_new(stage, "layers",
                            json_pack("[i,i]", low < 0 ? 0 : low, high > layers ? layers : high));
        json_array_append_new(stages, stage);
    }
    for (int i = 0; i < plan->block_count; i++)
        json_array_append_new(blocks, encode_block(plan, graph, i));
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:{s:s, s:f, s:i}, s:i, s:i, s:I, s:s, s:b, s:I, s:o, s:o, "
        "s:{s:f, s:f, s:I, s:f}}",
        "apiVersion", "gimbal/v1", "kind", "Plan", "id", plan->id, "referee",
        plan->predicted.referee, "search", "name", plan->predicted.search, "wall_s",
        plan->predicted.wall_s, "candidates", plan->predicted.candidates, "pp", plan->stage_count,
        "micro_batches", plan->micro_batches, "micro_batch_samples",
        (json_int_t)plan->micro_batch_samples, "schedule", plan->schedule->name, "overlap",
        plan->overlap, "global_batch", (json_int_t)plan_global_batch(plan), "stages", stages,
        "blocks", blocks, "predicted", "step_time_s", plan->predicted.step_time_s, "tokens_per_s",
        plan->predicted.tokens_per_s, "memory_bytes_max",
        (json_int_t)plan->predicted.memory_bytes_max, "bubble", plan->predicted.bubble);
    add_predictions(root, plan);
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    json_decref(root);
    return text;
}
