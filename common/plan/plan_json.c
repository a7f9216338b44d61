/* plan_json.c - a plan's one outward form: JSON, as in `gimbal plan -o json`, written and read.
 *
 * Units are bytes and seconds. Derived members (dp, tp, sp, shares) are for readers; reading
 * ignores them. What is read may come from a file or the network and is not trusted: a plan that
 * was read is consistent in itself. Numbers are in range, lists have one entry per rank or axis,
 * indices refer to something that exists. Whether it fits a model is for plan_check() to say. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/plan/plan.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
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

/* Is it an integer in [low, high]? JSON's integers have 64 bits, most of our fields fewer. */
static bool is_whole(const json_t *from, json_int_t low, json_int_t high)
{
    return json_is_integer(from) && json_integer_value(from) >= low &&
           json_integer_value(from) <= high;
}

/* Reads the integer under a key; -EINVAL when it is missing or out of range. */
static int decode_whole(json_t *from, const char *key, json_int_t low, json_int_t high,
                        int64_t *out, struct error *err)
{
    json_t *value = json_object_get(from, key);
    if (!is_whole(value, low, high))
        return error_set(err, -EINVAL, "%s is not a whole number from %lld to %lld", key,
                         (long long)low, (long long)high);
    *out = json_integer_value(value);
    return 0;
}

/* `layers` counts repeated layers only; the embedding is added to the first stage and the head to
 * the last. */
static int decode_layers(struct plan *plan, int index, json_t *from, struct error *err)
{
    struct plan_stage *stage = &plan->stages[index];
    json_t *first = json_array_get(from, 0), *end = json_array_get(from, 1);
    int layers = plan->block_count - 2;
    if (json_array_size(from) != 2 || !is_whole(end, 0, layers) ||
        !is_whole(first, 0, json_integer_value(end)))
        return error_set(err, -EINVAL,
                         "stages[%d].layers: wants [first, end], whole numbers from 0 to %d", index,
                         layers);
    stage->block_first = index == 0 ? 0 : (int)json_integer_value(first) + 1;
    int next =
        index == plan->stage_count - 1 ? plan->block_count : (int)json_integer_value(end) + 1;
    stage->block_count = next - stage->block_first;
    return 0;
}

/* `ranks` is the number of ranks of the stages before this one. */
static int decode_axes(struct mesh *mesh, int index, json_t *from, int ranks, struct error *err)
{
    if (!json_is_array(from) || json_array_size(from) > AXES_MAX)
        return error_set(err, -EINVAL, "stages[%d].axes: wants a list of at most %d sizes", index,
                         AXES_MAX);
    for (size_t i = 0; i < json_array_size(from); i++) {
        json_t *size = json_array_get(from, i);
        int most = (PLAN_RANKS_MAX - ranks) / mesh_count(mesh);
        if (!is_whole(size, 1, most))
            return error_set(err, -EINVAL,
                             "stages[%d].axes[%zu] is not a whole number from 1 to %d: a plan is "
                             "for at most %d devices",
                             index, i, most, PLAN_RANKS_MAX);
        mesh->size[mesh->axes++] = (int)json_integer_value(size);
    }
    if (mesh_count(mesh) > PLAN_RANKS_MAX - ranks)
        return error_set(err, -EINVAL, "stages[%d]: a plan is for at most %d devices", index,
                         PLAN_RANKS_MAX);
    return 0;
}

static int decode_weights(struct plan_stage *stage, int index, json_t *from, struct error *err)
{
    size_t count = (size_t)mesh_count(&stage->mesh);
    if (!json_is_array(from) || json_array_size(from) != count)
        return error_set(err, -EINVAL, "stages[%d].weights: wants %zu numbers", index, count);
    for (size_t i = 0; i < count; i++)
        if (!is_whole(json_array_get(from, i), 1, INT_MAX))
            return error_set(err, -EINVAL,
                             "stages[%d].weights[%zu] is not a whole number from 1 to %d", index, i,
                             INT_MAX);
    stage->weights = xcalloc(count, sizeof *stage->weights);
    for (size_t i = 0; i < count; i++)
        stage->weights[i] = (int)json_integer_value(json_array_get(from, i));
    stage->mesh.weights = stage->weights;
    return 0;
}

/* An empty list means that the stage has no devices assigned yet. */
static int decode_devices(struct plan_stage *stage, int index, json_t *from, struct error *err)
{
    size_t count = (size_t)mesh_count(&stage->mesh), found = json_array_size(from);
    if (json_is_array(from) && found == 0)
        return 0;
    if (!json_is_array(from) || found != count)
        return error_set(err, -EINVAL, "stages[%d].devices: wants %zu names, has %zu", index, count,
                         found);
    for (size_t i = 0; i < count; i++)
        if (!json_is_string(json_array_get(from, i)))
            return error_set(err, -EINVAL, "stages[%d].devices[%zu] is not a name", index, i);
    stage->devices = xcalloc(count, sizeof *stage->devices);
    for (size_t i = 0; i < count; i++)
        stage->devices[i] = xstrdup(json_string_value(json_array_get(from, i)));
    return 0;
}

static int decode_stage(json_t *from, int index, struct plan *plan, struct error *err)
{
    struct plan_stage *stage = &plan->stages[index];
    json_t *axes = NULL, *layers = NULL, *devices = NULL, *weights = NULL;
    json_int_t memory = 0;
    if (json_unpack(from, "{s:o, s:o, s?o, s?o, s?F, s?I}", "axes", &axes, "layers", &layers,
                    "devices", &devices, "weights", &weights, "time_s", &stage->time_s,
                    "memory_bytes", &memory) < 0 ||
        memory < 0)
        return error_set(err, -EINVAL,
                         "stages[%d]: wants axes and layers; time_s and memory_bytes are numbers",
                         index);
    stage->memory_bytes = (uint64_t)memory;
    int rc = decode_layers(plan, index, layers, err);
    if (rc == 0)
        rc = decode_axes(&stage->mesh, index, axes, plan_stage_rank(plan, index), err);
    if (rc == 0 && weights)
        rc = decode_weights(stage, index, weights, err);
    if (rc == 0 && devices)
        rc = decode_devices(stage, index, devices, err);
    return rc;
}

/* A missing member (NULL) means "none". */
static int decode_recompute(struct plan_block *block, int index, const json_t *from,
                            struct error *err)
{
    const char *name = from ? json_string_value(from) : recompute_names[RECOMPUTE_NONE];
    block->recompute = RECOMPUTE_NONE;
    while (name && block->recompute < RECOMPUTES &&
           strcmp(recompute_names[block->recompute], name) != 0)
        block->recompute++;
    if (!name || block->recompute == RECOMPUTES)
        return error_set(err, -EINVAL,
                         "blocks[%d].recompute is '%.64s'; none, selective and full are known",
                         index, name ? name : "(no text)");
    return 0;
}

static int decode_block(json_t *from, int index, const struct plan *plan, struct plan_block *block,
                        struct error *err)
{
    json_t *stage = json_object_get(from, "stage"), *names = json_object_get(from, "roles");
    json_t *zero = json_object_get(from, "zero");
    if (!is_whole(stage, 0, plan->stage_count - 1))
        return error_set(err, -EINVAL, "blocks[%d].stage is not a whole number from 0 to %d", index,
                         plan->stage_count - 1);
    if (zero && !is_whole(zero, 0, 3))
        return error_set(err, -EINVAL, "blocks[%d].zero is not 0, 1, 2 or 3", index);
    block->stage = (int)json_integer_value(stage);
    block->zero = (int)json_integer_value(zero);
    int rc = decode_recompute(block, index, json_object_get(from, "recompute"), err);
    if (rc < 0)
        return rc;
    int axes = plan->stages[block->stage].mesh.axes;
    if (!json_is_array(names) || (int)json_array_size(names) != axes)
        return error_set(err, -EINVAL, "blocks[%d].roles: wants one for each of %d axes", index,
                         axes);
    for (int axis = 0; axis < axes; axis++) {
        const char *name = json_string_value(json_array_get(names, (size_t)axis));
        char known[128];
        block->roles[axis] = name ? role_find(name) : NULL;
        if (!block->roles[axis])
            return error_set(err, -EINVAL, "blocks[%d].roles[%d]: unknown role '%.64s'; known: %s",
                             index, axis, name ? name : "(no text)",
                             role_list(known, sizeof known));
    }
    return 0;
}

/* Reads the top-level members that are not lists. */
static int decode_head(json_t *root, struct plan *plan, struct error *err)
{
    const char *id = json_string_value(json_object_get(root, "id"));
    const char *schedule = json_string_value(json_object_get(root, "schedule"));
    json_int_t memory = 0;
    int64_t micro_batches = 0;
    char known[128];
    if (id && strlen(id) >= sizeof plan->id)
        return error_set(err, -EINVAL, "id has more than %zu bytes", sizeof plan->id - 1);
    strcpy(plan->id, id ? id : "");
    plan->schedule = schedule ? schedule_find(schedule) : NULL;
    if (!plan->schedule)
        return error_set(err, -EINVAL, "unknown schedule '%.64s'; known: %s",
                         schedule ? schedule : "(no text)", schedule_list(known, sizeof known));
    const json_t *overlap = json_object_get(root, "overlap");
    if (overlap && !json_is_boolean(overlap))
        return error_set(err, -EINVAL, "overlap is neither true nor false");
    plan->overlap = !overlap || json_is_true(overlap);
    int rc = decode_whole(root, "micro_batches", 1, PLAN_MICRO_BATCHES_MAX, &micro_batches, err);
    if (rc == 0)
        rc = decode_whole(root, "micro_batch_samples", 1, PLAN_SAMPLES_MAX,
                          &plan->micro_batch_samples, err);
    if (rc < 0)
        return rc;
    plan->micro_batches = (int)micro_batches;
    if (json_unpack(root, "{s?{s?F, s?F, s?F, s?I, s?F}}", "predicted", "step_time_s",
                    &plan->predicted.step_time_s, "copies_time_s", &plan->predicted.copies_time_s,
                    "tokens_per_s", &plan->predicted.tokens_per_s, "memory_bytes_max", &memory,
                    "bubble", &plan->predicted.bubble) < 0 ||
        memory < 0)
        return error_set(err, -EINVAL, "predicted: what is told there has to be numbers");
    plan->predicted.memory_bytes_max = (uint64_t)memory;
    return 0;
}

static int decode_plan(json_t *root, struct plan **out, struct error *err)
{
    const char *version = NULL, *kind = NULL;
    json_t *stages = NULL, *blocks = NULL;
    if (json_unpack(root, "{s:s, s:s, s:o, s:o}", "apiVersion", &version, "kind", &kind, "stages",
                    &stages, "blocks", &blocks) < 0)
        return error_set(err, -EINVAL, "not a plan: wants apiVersion, kind, stages and blocks");
    if (strcmp(version, "gimbal/v1") != 0 || strcmp(kind, "Plan") != 0)
        return error_set(err, -EINVAL,
                         "not a plan: apiVersion '%.64s', kind '%.64s'; wants gimbal/v1, Plan",
                         version, kind);
    size_t stage_count = json_array_size(stages), block_count = json_array_size(blocks);
    if (stage_count < 1 || stage_count > block_count || block_count < 2 ||
        block_count > PLAN_BLOCKS_MAX)
        return error_set(err, -EINVAL,
                         "a plan has 2 to %d blocks in stages of at least one; this one has %zu "
                         "in %zu",
                         PLAN_BLOCKS_MAX, block_count, stage_count);

    struct plan *plan = plan_create((int)stage_count, (int)block_count);
    *out = plan;
    int rc = decode_head(root, plan, err);
    for (int i = 0; i < plan->stage_count && rc == 0; i++)
        rc = decode_stage(json_array_get(stages, (size_t)i), i, plan, err);
    for (int i = 0; i < plan->block_count && rc == 0; i++)
        rc = decode_block(json_array_get(blocks, (size_t)i), i, plan, &plan->blocks[i], err);
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
    int rc = decode_plan(root, &plan, err);
    json_decref(root);
    if (rc < 0)
        plan_destroy(plan);
    else
        *out = plan;
    return rc;
}

int plan_load(const char *path, struct plan **out, struct error *err)
{
    char *text;
    int rc = file_read(path, &text, err);
    if (rc < 0)
        return rc;
    rc = plan_decode(text, out, err);
    free(text);
    return rc < 0 ? error_prefix(err, rc, "plan '%s'", path) : 0;
}
