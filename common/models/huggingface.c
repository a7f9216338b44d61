/* huggingface.c - interprets a family's table: turns its rows into tensors of transformers, and
 * locates our weights in them by strides. */
#include "common/models/huggingface.h"

#include "common/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A copy of the name with '#' replaced by the layer number; freed by the caller. */
static char *name_in_layer(const char *name, int64_t layer)
{
    const char *place = strchr(name, '#');
    return place ? xasprintf("%.*s%" PRId64 "%s", (int)(place - name), name, layer, place + 1)
                 : xstrdup(name);
}

static int find_weight(const struct graph *graph, const char *name)
{
    for (size_t t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].kind == TENSOR_WEIGHT && strcmp(graph->tensors[t].name, name) == 0)
            return (int)t;
    return -1;
}

int64_t huggingface_size(const struct graph *graph, const char *weight, char dim)
{
    int tensor = find_weight(graph, weight);
    return tensor < 0 ? 0 : tensor_size(&graph->tensors[tensor], dim);
}

/* Sets the shape: an axis is the product of its dims, which all parts have in the same sizes; the
 * last one is shared by all. */
static void lay_axes(const struct huggingface_row *row, const struct tensor *ours, int parts,
                     struct huggingface_tensor *out)
{
    out->axes = 1;
    out->shape[0] = 1;
    for (const char *dim = row->axes; *dim; dim++) {
        if (*dim == ' ')
            out->shape[out->axes++] = 1;
        else
            out->shape[out->axes - 1] *= tensor_size(ours, *dim);
    }
    out->shape[out->axes - 1] *= parts;
}

/* Sets the strides of our dims from their innermost dim outwards. `beyond` is the number of
 * elements inside the axes done so far; it includes the other parts' share of the last axis. */
static void lay_part(const struct huggingface_row *row, const struct tensor *ours,
                     const struct huggingface_tensor *in, struct huggingface_part *out)
{
    int axis = in->axes - 1;
    int64_t step = 1, beyond = in->shape[axis];
    for (size_t i = strlen(row->axes); i-- > 0;) {
        char dim = row->axes[i];
        if (dim == ' ') {
            step = beyond;
            beyond *= in->shape[--axis];
            continue;
        }
        out->step[strchr(ours->dims, dim) - ours->dims] = step;
        step *= tensor_size(ours, dim);
    }
}

static int64_t part_width(const struct huggingface_tensor *tensor)
{
    return tensor->shape[tensor->axes - 1] / tensor->part_count;
}

static int lay_row(const struct huggingface_row *row, int64_t layer, const struct graph *graph,
                   struct huggingface_tensor *out, struct error *err)
{
    *out = (struct huggingface_tensor){.name = name_in_layer(row->theirs, layer),
                                       .first = row->axes[1] == ' ' ? row->axes[0] : '\0'};
    while (out->part_count < HUGGINGFACE_PARTS && row->ours[out->part_count])
        out->part_count++;
    for (int i = 0; i < HUGGINGFACE_PARTS && row->ours[i]; i++) {
        char *ours = name_in_layer(row->ours[i], layer);
        int tensor = find_weight(graph, ours);
        if (tensor < 0)
            error_set(err, -ENOSYS, "the model has no weight '%s' for '%s'", ours, out->name);
        free(ours);
        if (tensor < 0)
            return -ENOSYS;
        const struct tensor *weight = &graph->tensors[tensor];
        if (i == 0)
            lay_axes(row, weight, out->part_count, out);
        out->parts[i] = (struct huggingface_part){
            .tensor = tensor, .whole = tensor_box(weight, 0), .first = i * part_width(out)};
        lay_part(row, weight, out, &out->parts[i]);
    }
    return 0;
}

/* Checks that every one of our weights is in one of their tensors. */
static int check_all(const struct graph *graph, const struct huggingface_tensor *tensors,
                     size_t count, struct error *err)
{
    bool *found = xcalloc(graph->tensor_count, sizeof *found);
    int rc = 0;
    for (size_t i = 0; i < count; i++)
        for (int part = 0; part < tensors[i].part_count; part++)
            found[tensors[i].parts[part].tensor] = true;
    for (size_t t = 0; t < graph->tensor_count && rc == 0; t++)
        if (graph->tensors[t].kind == TENSOR_WEIGHT && !found[t])
            rc = error_set(err, -ENOSYS, "transformers has no place for weight '%s'",
                           graph->tensors[t].name);
    free(found);
    return rc;
}

/* Is the head's weight the embedding table? Families without the choice (`ties`) that transformers
 * knows are always tied. */
static bool is_tied(const struct job_model *config)
{
    return config->tied == ANSWER_YES || !model_find(config->family)->ties;
}

int huggingface_tensors(const struct job_model *config, const struct graph *graph,
                        struct huggingface_tensor **out, size_t *count, struct error *err)
{
    const struct huggingface *theirs = model_find(config->family)->huggingface;
    size_t capacity = 0;
    int rc = 0;
    *out = NULL;
    *count = 0;
    if (!theirs)
        return error_set(err, -ENOSYS, "model.family %s is none that transformers reads",
                         config->family);
    for (const struct huggingface_row *row = theirs->rows; row->theirs && rc == 0; row++) {
        int64_t times = strchr(row->theirs, '#') ? config->layers : 1;
        if (row->untied && is_tied(config))
            continue;
        for (int64_t layer = 0; layer < times && rc == 0; layer++) {
            *out = grow(*out, *count, &capacity, sizeof **out);
            rc = lay_row(row, layer, graph, &(*out)[(*count)++], err);
            struct huggingface_tensor *tensor = &(*out)[*count - 1];
            tensor->twin = is_tied(config) ? row->twin : NULL;
            tensor->bare = tensor->name + (row->untied ? 0 : strlen(theirs->prefix));
        }
    }
    if (rc == 0)
        rc = check_all(graph, *out, *count, err);
    if (rc < 0) {
        huggingface_free(*out, *count);
        *out = NULL;
        *count = 0;
    }
    return rc;
}

void huggingface_free(struct huggingface_tensor *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(tensors[i].name);
    free(tensors);
}

json_t *huggingface_config(const struct job_model *config, const struct graph *graph)
{
    return model_find(config->family)->huggingface->config(config, graph);
}

/* Six digits: settings are floats, and more digits would print 1e-5 as 9.99999974e-06. */
char *huggingface_print(const json_t *config)
{
    return json_dumps(config, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
}

int64_t huggingface_count(const struct huggingface_tensor *tensor)
{
    int64_t count = 1;
    for (int axis = 0; axis < tensor->axes; axis++)
        count *= tensor->shape[axis];
    return count;
}

void huggingface_put(const struct huggingface_part *part, const float *ours, float *theirs)
{
    int64_t at[DIMS_MAX] = {0}, count = box_count(&part->whole), place = part->first;
    for (int64_t i = 0; i < count; i++) {
        theirs[place] = ours[i];
        for (int dim = part->whole.dims - 1; dim >= 0; dim--) {
            place += part->step[dim];
            if (++at[dim] < part->whole.high[dim])
                break;
            place -= at[dim] * part->step[dim];
            at[dim] = 0;
        }
    }
}
