/* spec.c - a table has a row for each key: where it goes, and what may be written. */
#include "coordinator/planner/galvatron/spec.h"

#include "coordinator/planner/galvatron/files.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define RESERVING_GB 20
#define RESERVE 0.2

struct galvatron_spec galvatron_spec_default(void)
{
    return (struct galvatron_spec){
        .sequence_parallel = GALVATRON_AS_PROFILED,
        .mixed = GALVATRON_AS_PROFILED,
        .async_grad_reduce = true,
        .zero2 = true,
        .max_tp = 8,
        .context_mb = 1024,
        .cost_factor = 1,
    };
}

int galvatron_devices(const struct galvatron_spec *spec)
{
    return spec->nodes * spec->gpus_per_node;
}

int galvatron_layers(const struct galvatron_spec *spec)
{
    int layers = 0;
    for (int i = 0; i < spec->type_count; i++)
        layers += spec->types[i].count;
    return layers;
}

int galvatron_type_of(const struct galvatron_spec *spec, int layer)
{
    int type = 0;
    while (type < spec->type_count - 1 && layer >= spec->types[type].count)
        layer -= spec->types[type++].count;
    return type;
}

int64_t galvatron_budget_mb(const struct galvatron_spec *spec)
{
    return (int64_t)(spec->memory_gb * 1024);
}

int64_t galvatron_reserve_mb(const struct galvatron_spec *spec)
{
    return spec->memory_gb > RESERVING_GB ? (int64_t)((double)galvatron_budget_mb(spec) * RESERVE)
                                          : 0;
}

/* Where a value goes: an int or an int64_t from 1 on; a double from 0 on or above it; a bool or an
 * enum galvatron_choice, true if it is not the first of `words` (without words: true or false); or
 * the index among `words`. */
enum kind { TO_INT, TO_INT64, TO_DOUBLE, TO_POSITIVE, TO_BOOL, TO_CHOICE, TO_MODE };

static const char *const time_modes[] = {"auto", "static", "batch", "sequence", NULL};
static const char *const spaces[] = {"tp", "tp+sp", NULL};
static const char *const orders[] = {"1f1b", "gpipe", NULL};
static const char *const pipelines[] = {"pipedream_flush", "gpipe", NULL};
static const char *const precisions[] = {"fp32", "bf16", "fp16", NULL};
static const char *const dp_types[] = {"ddp", "zero2", NULL};

/* A key of the object, and the flag of that project's command line for the same. */
static const struct row {
    const char *key, *flag;
    enum kind kind;
    size_t offset;
    const char *const *words;
    bool negated; /* the flag stands for false */
} rows[] = {
#define AT(MEMBER) offsetof(struct galvatron_spec, MEMBER)
    {"nodes", "num_nodes", TO_INT, AT(nodes), NULL, false},
    {"gpus_per_node", "num_gpus_per_node", TO_INT, AT(gpus_per_node), NULL, false},
    {"memory_GB", "memory_constraint", TO_POSITIVE, AT(memory_gb), NULL, false},
    {"global_bsz", "settle_bsz", TO_INT64, AT(batch), NULL, false},
    {"time_mode", "time_profile_mode", TO_MODE, AT(time_mode), time_modes, false},
    {"memory_mode", "memory_profile_mode", TO_MODE, AT(memory_mode), time_modes, false},
    {"sequence_parallel", "sequence_parallel", TO_CHOICE, AT(sequence_parallel), NULL, false},
    {"async_grad_reduce", "no_async_grad_reduce", TO_BOOL, AT(async_grad_reduce), NULL, true},
    {"sp_space", "sp_space", TO_BOOL, AT(measured_collectives), spaces, false},
    {"max_tp", "max_tp_deg", TO_INT, AT(max_tp), NULL, false},
    {"zero2", NULL, TO_BOOL, AT(zero2), NULL, false},
    {NULL, "default_dp_type", TO_BOOL, AT(zero2), dp_types, false},
    {"precision", "mixed_precision", TO_CHOICE, AT(mixed), precisions, false},
    {"schedule", NULL, TO_BOOL, AT(gpipe), orders, false},
    {NULL, "pipeline_type", TO_BOOL, AT(gpipe), pipelines, false},
    {"global_buffer", "no_global_memory_buffer", TO_BOOL, AT(global_buffer), NULL, true},
    {"context_MB", NULL, TO_DOUBLE, AT(context_mb), NULL, false},
    {"cost_factor", NULL, TO_POSITIVE, AT(cost_factor), NULL, false},
    {"hidden_size", NULL, TO_INT64, AT(hidden_max), NULL, false},
#undef AT
};
#define ROWS (sizeof rows / sizeof *rows)

static int take_row(const char *path, const struct row *row, const char *name, const json_t *value,
                    struct galvatron_spec *out, struct error *err)
{
    void *place = (char *)out + row->offset;
    int64_t whole = 0;
    double number = 0;
    int index = 0, rc;
    if (row->kind == TO_DOUBLE || row->kind == TO_POSITIVE)
        rc = files_number(path, name, value, row->kind == TO_POSITIVE, &number, err);
    else if (row->words)
        rc = files_word(path, name, value, row->words, &index, err);
    else
        rc = files_whole(path, name, value, row->kind == TO_INT || row->kind == TO_INT64, &whole,
                         err);
    if (rc < 0 && !row->words && (row->kind == TO_BOOL || row->kind == TO_CHOICE))
        return error_set(err, rc, "'%s': %s is neither true nor false", path, name);
    if (rc < 0)
        return rc;
    bool yes = row->words ? index != 0 : whole != 0;
    if (row->kind == TO_INT && whole > GALVATRON_DEVICES_MAX)
        return error_set(err, -EINVAL, "'%s': %s is %lld, and %d is the most", path, name,
                         (long long)whole, GALVATRON_DEVICES_MAX);
    if (row->kind == TO_INT)
        *(int *)place = (int)whole;
    else if (row->kind == TO_INT64)
        *(int64_t *)place = whole;
    else if (row->kind == TO_DOUBLE || row->kind == TO_POSITIVE)
        *(double *)place = number;
    else if (row->kind == TO_BOOL)
        *(bool *)place = yes;
    else if (row->kind == TO_CHOICE)
        *(enum galvatron_choice *)place = yes ? GALVATRON_YES : GALVATRON_NO;
    else
        *(enum galvatron_mode *)place = (enum galvatron_mode)index;
    return 0;
}

static int take_type(const char *path, size_t index, const json_t *object,
                     struct galvatron_type *out, struct error *err)
{
    char key[64];
    int64_t count = 0;
    snprintf(key, sizeof key, "layers[%zu].hidden_size", index);
    int rc = files_whole(path, key, json_object_get(object, "hidden_size"), 1, &out->hidden, err);
    snprintf(key, sizeof key, "layers[%zu].seq_len", index);
    if (rc == 0)
        rc = files_whole(path, key, json_object_get(object, "seq_len"), 1, &out->seq, err);
    snprintf(key, sizeof key, "layers[%zu].layer_num", index);
    if (rc == 0)
        rc = files_whole(path, key, json_object_get(object, "layer_num"), 1, &count, err);
    if (rc == 0 && count > GALVATRON_LAYERS_MAX)
        rc = error_set(err, -EINVAL, "'%s': %s is %lld, and %d is the most", path, key,
                       (long long)count, GALVATRON_LAYERS_MAX);
    out->count = (int)count;
    return rc;
}

static int take_types(const char *path, const json_t *array, struct galvatron_spec *out,
                      struct error *err)
{
    size_t count = json_array_size(array);
    int rc = 0;
    if (count < 1 || count > GALVATRON_TYPES_MAX)
        return error_set(err, -EINVAL,
                         "'%s': layers has %zu types of layers: write a list of 1 to %d objects "
                         "with hidden_size, seq_len and layer_num",
                         path, count, GALVATRON_TYPES_MAX);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = take_type(path, i, json_array_get(array, i), &out->types[i], err);
    out->type_count = (int)count;
    if (rc == 0 && galvatron_layers(out) > GALVATRON_LAYERS_MAX)
        rc = error_set(err, -EINVAL, "'%s': layers are %d together, and %d is the most", path,
                       galvatron_layers(out), GALVATRON_LAYERS_MAX);
    return rc;
}

/* The words of a command line: "--memory_constraint", "16", "--sequence_parallel". Flags that
 * change nothing here are passed over. */
static int take_flags(const char *path, const json_t *flags, struct galvatron_spec *out,
                      struct error *err)
{
    int rc = 0;
    *out = (struct galvatron_spec){.nodes = 1,
                                   .gpus_per_node = 8,
                                   .memory_gb = 24,
                                   .type_count = out->type_count,
                                   .batch = out->batch,
                                   .mixed = GALVATRON_YES,
                                   .async_grad_reduce = true,
                                   .gpipe = true,
                                   .global_buffer = true,
                                   .max_tp = 8,
                                   .context_mb = 1024,
                                   .cost_factor = 1};
    for (size_t i = 0; i < json_array_size(flags) && rc == 0; i++) {
        char name[64] = "";
        const char *word = json_string_value(json_array_get(flags, i));
        const char *next = json_string_value(json_array_get(flags, i + 1));
        if (!word || strncmp(word, "--", 2) != 0)
            continue; /* the value of a flag that was passed over */
        snprintf(name, sizeof name, "%s", word + 2);
        for (char *at = name; *at; at++)
            *at = *at == '-' ? '_' : *at;
        for (size_t r = 0; r < ROWS && rc == 0; r++) {
            if (!rows[r].flag || strcmp(rows[r].flag, name) != 0)
                continue;
            bool valued = next && strncmp(next, "--", 2) != 0;
            char *end = NULL;
            double number = valued ? strtod(next, &end) : !rows[r].negated;
            json_t *value = rows[r].words && valued ? json_string(next) : json_real(number);
            if (valued && !rows[r].words && *end)
                rc = error_set(err, -EINVAL, "'%s': flag %s is '%s', which is no number", path,
                               word, next);
            else
                rc = take_row(path, &rows[r], word, value, out, err);
            json_decref(value);
        }
    }
    return rc;
}

static int take_keys(const char *path, json_t *spec, struct galvatron_spec *out, struct error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(spec, key, value)
    {
        size_t r = 0;
        int rc = 0;
        while (r < ROWS && !(rows[r].key && strcmp(rows[r].key, key) == 0))
            r++;
        if (r < ROWS)
            rc = take_row(path, &rows[r], key, value, out, err);
        else if (strcmp(key, "model") != 0 && strcmp(key, "layers") != 0 &&
                 strcmp(key, "flags") != 0 && strcmp(key, "hw_dir") != 0)
            rc = error_set(err, -EINVAL,
                           "'%s': a spec has no key %s: it has model, layers, nodes, "
                           "gpus_per_node, memory_GB, time_mode, memory_mode, sequence_parallel, "
                           "async_grad_reduce, sp_space, max_tp, zero2, precision, schedule, "
                           "global_buffer, context_MB, cost_factor, hidden_size, global_bsz",
                           path, key);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int take_spec(const char *path, json_t *spec, struct galvatron_spec *out, struct error *err)
{
    const json_t *layers = json_object_get(spec, "layers"), *flags = json_object_get(spec, "flags");
    const char *model = json_string_value(json_object_get(spec, "model"));
    struct galvatron_type types[GALVATRON_TYPES_MAX];
    int rc = layers ? take_types(path, layers, out, err) : 0;
    memcpy(types, out->types, sizeof types);
    /* Whoever writes the layers writes all of it, with that project's defaults. */
    if (layers && rc == 0)
        out->time_mode = out->memory_mode = GALVATRON_STATIC;
    if (rc == 0 && flags) {
        rc = take_flags(path, flags, out, err);
        memcpy(out->types, types, sizeof types);
        if (out->time_mode == GALVATRON_AUTO)
            out->time_mode = GALVATRON_STATIC;
        if (out->memory_mode == GALVATRON_AUTO)
            out->memory_mode = GALVATRON_STATIC;
    }
    if (rc == 0)
        rc = take_keys(path, spec, out, err);
    if (rc == 0 && model)
        snprintf(out->model, sizeof out->model, "%s", model);
    return rc;
}

int galvatron_spec_read(const char *path, struct galvatron_spec *out, struct error *err)
{
    struct galvatron_spec spec = *out;
    json_t *root;
    int rc = files_read(path, &root, err);
    if (rc < 0)
        return rc;
    json_t *inner = json_object_get(root, "spec");
    const json_t *batch = json_object_get(root, "batch_asked");
    if (!batch)
        batch = json_object_get(json_object_get(root, "plan"), "global_bsz");
    if (inner && batch)
        rc = files_whole(path, "the batch", batch, 1, &spec.batch, err);
    if (rc == 0)
        rc = take_spec(path, inner ? inner : root, &spec, err);
    json_decref(root);
    if (rc == 0)
        *out = spec;
    return rc;
}

int galvatron_spec_check(const struct galvatron_spec *spec, struct error *err)
{
    const char *missing = spec->type_count == 0      ? "layers"
                          : spec->nodes == 0         ? "nodes"
                          : spec->gpus_per_node == 0 ? "gpus_per_node"
                          : spec->memory_gb == 0     ? "memory_GB"
                                                     : NULL;
    if (missing)
        return error_set(err, -EINVAL, "nothing says the spec's %s: write it into the spec",
                         missing);
    if ((int64_t)spec->nodes * spec->gpus_per_node > GALVATRON_DEVICES_MAX)
        return error_set(err, -EINVAL, "%d nodes of %d devices are too many: %d is the most",
                         spec->nodes, spec->gpus_per_node, GALVATRON_DEVICES_MAX);
    if (spec->memory_mode == GALVATRON_BATCH)
        return error_set(err, -EINVAL,
                         "memory_mode is batch: memory is profiled static or by sequence");
    return 0;
}
