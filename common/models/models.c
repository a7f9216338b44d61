/* models.c - the table of model families, and the checks that all of them share. */
#include "common/models/model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

extern const struct model model_gpt, model_llama, model_qwen, model_qwen3, model_bert, model_vit;

const struct model *const models[] = {&model_gpt,  &model_llama, &model_qwen, &model_qwen3,
                                      &model_bert, &model_vit,   NULL};

static int check_sizes(const struct job_model *config, struct error *err)
{
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"layers", config->layers},
                 {"hidden", config->hidden},
                 {"heads", config->heads},
                 {"seq", config->seq},
                 {"vocab", config->vocab}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1)
            return error_set(err, -EINVAL, "model.%s is %lld, at least 1 is needed", sizes[i].name,
                             (long long)sizes[i].value);
    return 0;
}

const struct model *model_find(const char *family)
{
    for (int i = 0; models[i]; i++)
        if (strcmp(models[i]->family, family) == 0)
            return models[i];
    return NULL;
}

/* Has the model an operand along this dim? */
static bool has_dim(const struct graph *graph, char dim)
{
    for (size_t n = 0; n < graph->node_count; n++)
        if (sizes_get(&graph->nodes[n].sizes, dim) > 0)
            return true;
    return false;
}

static bool has_operation(const struct graph *graph, const struct operation *operation)
{
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].operation == operation)
            return true;
    return false;
}

/* Refuses settings that the family does not use: they would silently have no effect. */
static int check_used(const struct job_model *config, const struct graph *graph, struct error *err)
{
    const struct {
        const char *key, *of;
        bool given, used;
    } keys[] = {
        {"rope_theta", "rotary positions", config->rope_theta > 0,
         has_operation(graph, &operation_rotary)},
        {"rope_scaling", "rotary positions", config->rope_scaling.rope_type != JOB_ROPE_DEFAULT,
         has_operation(graph, &operation_rotary)},
        {"kv_heads", "queries in groups", config->kv_heads > 0, has_dim(graph, 'g')},
        {"head_dim", "queries in groups", config->head_dim > 0, has_dim(graph, 'g')},
        {"patch", "images", config->patch > 0, has_dim(graph, 'p')},
        {"tied", "a choice of it", config->tied != ANSWER_NONE, model_find(config->family)->ties},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].given && !keys[i].used)
            return error_set(err, -EINVAL,
                             "model.%s is of models with %s, and those of family %s have none",
                             keys[i].key, keys[i].of, config->family);
    return 0;
}

int model_build(const struct job_model *config, enum element element, struct graph **out,
                struct error *err)
{
    char known[256] = "";
    int used = 0, rc = check_sizes(config, err);
    if (rc < 0)
        return rc;
    const struct model *model = model_find(config->family);
    if (model) {
        rc = model->build(config, out, err);
        if (rc == 0)
            (*out)->element_bytes = (int)element_size(element);
        if (rc == 0 && (rc = check_used(config, *out, err)) < 0)
            graph_destroy(*out);
        return rc;
    }
    for (int i = 0; models[i]; i++)
        used += snprintf(known + used, sizeof known - (size_t)used, i ? ", %s" : "%s",
                         models[i]->family);
    return error_set(err, -EINVAL, "model.family '%s' is unknown; known: %s", config->family,
                     known);
}

int model_runs(const struct job_model *config, const struct graph *graph, struct error *err)
{
    const struct model *model = model_find(config->family);
    if (model && model->untrained)
        return error_set(err, -ENOSYS, "model.family %s can be planned, not trained: %s",
                         config->family, model->untrained);
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].operation->planned)
            return error_set(err, -ENOSYS,
                             "model.family %s can be planned, not trained: no device has a kernel "
                             "for operation %s yet",
                             config->family, graph->nodes[n].operation->name);
    return 0;
}
