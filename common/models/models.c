/* models.c - the family of model families. */
#include "common/models/model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

extern const struct model model_gpt;

const struct model *const models[] = {&model_gpt, NULL};

struct model_config model_config_of(const struct job_model *job)
{
    return (struct model_config){
        .family = job->family,
        .layers = job->layers,
        .hidden = job->hidden,
        .heads = job->heads,
        .seq = job->seq,
        .vocab = job->vocab,
        .ffn = job->ffn,
    };
}

static int check_sizes(const struct model_config *config, struct error *err)
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

int model_build(const struct model_config *config, struct graph **out, struct error *err)
{
    char known[256] = "";
    int used = 0, rc = check_sizes(config, err);
    if (rc < 0)
        return rc;
    for (int i = 0; models[i]; i++) {
        if (strcmp(models[i]->family, config->family) == 0)
            return models[i]->build(config, out, err);
        used += snprintf(known + used, sizeof known - (size_t)used, i ? ", %s" : "%s",
                         models[i]->family);
    }
    return error_set(err, -EINVAL, "model.family '%s' is unknown; known: %s", config->family,
                     known);
}
