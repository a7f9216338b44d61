/* encode.c - a plan as JSON, the contract of `gimbal plan -o json`, and back.
 *
 * Base units: bytes and seconds. What is derived (dp, tp, shares) is written for reading and
 * ignored when a plan is read. */
#include "common/plan/plan.h"

#include "common/base/memory.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
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

/* Samples of a micro-batch that each rank of the stage works on. */
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

char *plan_encode(const struct plan *plan, const struct graph *graph)
{
    json_t *stages = json_array(), *blocks = json_array();
    for (int i = 0; i < plan->stage_count; i++) {
        json_t *stage = encode_stage(&plan->stages[i]);
        /* Repeated layers: without the first block of the model and the last. */
        int low = plan->stages[i].block_first - 1,
            high = plan->stages[i].block_first + plan->stages[i].block_count - 1;
        int layers = plan->block_count - 2;
        json_object_set_new(stage, "layers",
                            json_pack("[i,i]", low < 0 ? 0 : low, high > layers ? layers : high));
        json_array_append_new(stages, stage);
    }
    for (int i = 0; i < plan->block_count; i++)
        json_array_append_new(blocks, encode_block(plan, graph, i));
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:s, s:{s:s, s:f, s:i}, s:i, s:i, s:I, s:s, s:I, s:o, s:o, "
                  "s:{s:f, s:f, s:I, s:f}}",
                  "apiVersion", "gimbal/v1", "kind", "Plan", "id", plan->id, "referee",
                  plan->predicted.referee, "search", "name", plan->predicted.search, "wall_s",
                  plan->predicted.wall_s, "candidates", plan->predicted.candidates, "pp",
                  plan->stage_count, "micro_batches", plan->micro_batches, "micro_batch_samples",
                  (json_int_t)plan->micro_batch_samples, "schedule", plan->schedule->name,
                  "global_batch", (json_int_t)plan_global_batch(plan), "stages", stages, "blocks",
                  blocks, "predicted", "step_time_s", plan->predicted.step_time_s, "tokens_per_s",
                  plan->predicted.tokens_per_s, "memory_bytes_max",
                  (json_int_t)plan->predicted.memory_bytes_max, "bubble", plan->predicted.bubble);
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    json_decref(root);
    return text;
}

/* `layers` counts repeated layers; the block before the first goes with the first stage, the
 * block after the last with the last. */
static void decode_layers(struct plan *plan, int index, int first, int end)
{
    struct plan_stage *stage = &plan->stages[index];
    stage->block_first = index == 0 ? 0 : first + 1;
    end = index == plan->stage_count - 1 ? plan->block_count : end + 1;
    stage->block_count = end - stage->block_first;
}

static int decode_stage(json_t *from, int index, struct plan *plan, struct error *err)
{
    struct plan_stage *stage = &plan->stages[index];
    json_t *axes = NULL, *devices = NULL, *weights = NULL;
    int first, end;
    json_int_t memory = 0;
    if (json_unpack(from, "{s:o, s:[i,i], s?o, s?o, s?F, s?I}", "axes", &axes, "layers", &first,
                    &end, "devices", &devices, "weights", &weights, "time_s", &stage->time_s,
                    "memory_bytes", &memory) < 0 ||
        !json_is_array(axes) || json_array_size(axes) > AXES_MAX)
        return error_set(err, -EINVAL,
                         "stages[%d]: wants axes (at most %d) and layers [first, end]", index,
                         AXES_MAX);
    decode_layers(plan, index, first, end);
    stage->memory_bytes = (uint64_t)memory;
    int64_t count = 1;
    for (size_t i = 0; i < json_array_size(axes); i++) {
        json_int_t size = json_integer_value(json_array_get(axes, i));
        if (size < 1 || size > 65536 || count * size > 65536)
            return error_set(err, -EINVAL, "stages[%d].axes[%zu] is not a size from 1 to 65536",
                             index, i);
        stage->mesh.size[stage->mesh.axes++] = (int)size;
        count *= size;
    }
    if (weights && (!json_is_array(weights) || (int64_t)json_array_size(weights) != count))
        return error_set(err, -EINVAL, "stages[%d].weights: wants %lld numbers", index,
                         (long long)count);
    if (devices && json_array_size(devices) && (int64_t)json_array_size(devices) != count)
        return error_set(err, -EINVAL, "stages[%d].devices: wants %lld names, has %zu", index,
                         (long long)count, json_array_size(devices));
    if (weights) {
        stage->weights = xcalloc((size_t)count, sizeof *stage->weights);
        for (int64_t i = 0; i < count; i++)
            stage->weights[i] = (int)json_integer_value(json_array_get(weights, (size_t)i));
        stage->mesh.weights = stage->weights;
    }
    if (devices && json_array_size(devices)) {
        stage->devices = xcalloc((size_t)count, sizeof *stage->devices);
        for (int64_t i = 0; i < count; i++) {
            const char *name = json_string_value(json_array_get(devices, (size_t)i));
            stage->devices[i] = xstrdup(name ? name : "");
        }
    }
    return 0;
}

static int decode_block(json_t *from, int index, const struct plan *plan, struct plan_block *block,
                        struct error *err)
{
    json_t *names = NULL;
    const char *recompute = recompute_names[RECOMPUTE_NONE];
    if (json_unpack(from, "{s:i, s:o, s?i, s?s}", "stage", &block->stage, "roles", &names, "zero",
                    &block->zero, "recompute", &recompute) < 0)
        return error_set(err, -EINVAL, "blocks[%d]: wants stage and roles", index);
    while (block->recompute < RECOMPUTES &&
           strcmp(recompute_names[block->recompute], recompute) != 0)
        block->recompute++;
    if (block->recompute == RECOMPUTES)
        return error_set(err, -EINVAL,
                         "blocks[%d].recompute is '%s'; none, selective and full are known", index,
                         recompute);
    if (block->stage < 0 || block->stage >= plan->stage_count)
        return error_set(err, -EINVAL, "blocks[%d].stage is %d; there are %d stages", index,
                         block->stage, plan->stage_count);
    int axes = plan->stages[block->stage].mesh.axes;
    if (!json_is_array(names) || (int)json_array_size(names) != axes)
        return error_set(err, -EINVAL, "blocks[%d].roles: wants one for each of %d axes", index,
                         axes);
    for (int axis = 0; axis < axes; axis++) {
        const char *name = json_string_value(json_array_get(names, (size_t)axis));
        block->roles[axis] = name ? role_find(name) : NULL;
        if (!block->roles[axis])
            return error_set(err, -EINVAL, "blocks[%d].roles[%d]: unknown role '%s'", index, axis,
                             name ? name : "(not a text)");
    }
    return 0;
}

static int decode(json_t *root, struct plan **out, struct error *err)
{
    const char *version = NULL, *kind = NULL, *schedule = NULL, *id = "";
    json_t *stages = NULL, *blocks = NULL;
    json_int_t samples = 0, memory = 0;
    int micro_batches = 0;
    if (json_unpack(root, "{s:s, s:s, s?s, s:i, s:I, s:s, s:o, s:o}", "apiVersion", &version,
                    "kind", &kind, "id", &id, "micro_batches", &micro_batches,
                    "micro_batch_samples", &samples, "schedule", &schedule, "stages", &stages,
                    "blocks", &blocks) < 0 ||
        !json_is_array(stages) || !json_is_array(blocks))
        return error_set(err, -EINVAL,
                         "not a plan: wants apiVersion, kind, micro_batches, micro_batch_samples, "
                         "schedule, stages and blocks");
    if (strcmp(version, "gimbal/v1") != 0 || strcmp(kind, "Plan") != 0)
        return error_set(err, -EINVAL,
                         "not a plan: apiVersion '%s', kind '%s'; wants gimbal/v1, Plan", version,
                         kind);

    struct plan *plan = plan_create((int)json_array_size(stages), (int)json_array_size(blocks));
    *out = plan;
    strncat(plan->id, id, sizeof plan->id - 1);
    plan->micro_batches = micro_batches;
    plan->micro_batch_samples = samples;
    plan->schedule = schedule_find(schedule);
    if (!plan->schedule)
        return error_set(err, -EINVAL, "unknown schedule '%s'", schedule);
    int rc = 0;
    for (int i = 0; i < plan->stage_count && rc == 0; i++)
        rc = decode_stage(json_array_get(stages, (size_t)i), i, plan, err);
    for (int i = 0; i < plan->block_count && rc == 0; i++)
        rc = decode_block(json_array_get(blocks, (size_t)i), i, plan, &plan->blocks[i], err);
    json_unpack(root, "{s?{s?F, s?F, s?I, s?F}}", "predicted", "step_time_s",
                &plan->predicted.step_time_s, "tokens_per_s", &plan->predicted.tokens_per_s,
                "memory_bytes_max", &memory, "bubble", &plan->predicted.bubble);
    plan->predicted.memory_bytes_max = (uint64_t)memory;
    return rc;
}

int plan_decode(const char *text, struct plan **out, struct error *err)
{
    json_error_t where;
    struct plan *plan = NULL;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        return error_set(err, -EINVAL, "plan, line %d column %d: %s", where.line, where.column,
                         where.text);
    int rc = decode(root, &plan, err);
    json_decref(root);
    if (rc < 0)
        plan_destroy(plan);
    else
        *out = plan;
    return rc;
}
