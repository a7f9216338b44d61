/* origin.c - what an export keeps of the folder that its model came from. */
#include "worker/huggingface/origin.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "worker/huggingface/tensor_files.h"

#include <stdlib.h>

/* A tokenizer that cannot be read here is none that the data has. */
static bool has_tokens(const char *folder, const struct tokenizer *ours)
{
    struct error err;
    struct tokenizer *theirs = NULL;
    int64_t id;
    if (!ours)
        return true;
    bool same = tokenizer_open(folder, &theirs, &err) == 0 && tokenizer_equal(theirs, ours, &id);
    tokenizer_close(theirs);
    return same;
}

void origin_open(const struct job_config *job, const struct tokenizer *tokenizer,
                 struct origin *out)
{
    struct error err;
    *out = (struct origin){.folder = job->model.weights};
    if (!out->folder || tensor_files_json(out->folder, "config.json", &out->config, &err) < 0)
        return;
    out->same_tokens = has_tokens(out->folder, tokenizer);
}

void origin_finish(struct origin *origin)
{
    json_decref(origin->config);
    *origin = (struct origin){0};
}

void origin_keep(const struct origin *origin, json_t *config)
{
    static const char *const tokens[] = {"bos_token_id", "eos_token_id", "pad_token_id", NULL};
    static const char length[] = "max_position_embeddings";
    json_t *value;
    for (int i = 0; origin->same_tokens && tokens[i]; i++)
        if ((value = json_object_get(origin->config, tokens[i])))
            json_object_set(config, tokens[i], value);
    /* Where positions are weights, it is their number, and no key of ours has this name. */
    value = json_object_get(origin->config, length);
    if (json_object_get(config, length) && json_is_integer(value))
        json_object_set(config, length, value);
}

static int copy_file(const char *from, const char *to, const char *name, struct error *err)
{
    char *source = xasprintf("%s/%s", from, name), *target = xasprintf("%s/%s", to, name);
    char *text = NULL;
    int rc = file_read(source, &text, err);
    if (rc == 0)
        rc = file_write(target, text, 0666, err);
    free(text);
    free(source);
    free(target);
    return rc;
}

int origin_copy(const struct origin *origin, const char *folder, struct error *err)
{
    static const char *const names[] = {"generation_config.json",  "chat_template.jinja",
                                        "chat_template.json",      ORIGIN_SETTINGS,
                                        "special_tokens_map.json", NULL};
    int rc = 0;
    for (int i = 0; origin->same_tokens && names[i] && rc == 0; i++)
        if (tensor_files_has(origin->folder, names[i]))
            rc = copy_file(origin->folder, folder, names[i], err);
    return rc;
}
