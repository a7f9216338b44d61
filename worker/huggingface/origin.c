/* origin.c - what an export keeps of the folder that its model came from. */
#include "worker/huggingface/origin.h"

#include "common/base/memory.h"
#include "common/models/huggingface.h"
#include "worker/data/files.h"
#include "worker/huggingface/tensor_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* A folder may have changed since the training began with it. */
static bool is_of_model(const json_t *config, const struct job_config *job,
                        const struct graph *graph)
{
    struct error err;
    struct sizes sizes;
    return huggingface_compare(&job->model, graph, config, &sizes, &err) == 0;
}

void origin_open(const struct job_config *job, const struct graph *graph,
                 const struct tokenizer *tokenizer, struct origin *out)
{
    struct error err;
    *out = (struct origin){.folder = job->model.weights};
    if (!out->folder || tensor_files_json(out->folder, "config.json", &out->config, &err) < 0)
        return;
    if (is_of_model(out->config, job, graph)) {
        out->same_tokens = has_tokens(out->folder, tokenizer);
        return;
    }
    json_decref(out->config);
    out->config = NULL;
}

void origin_finish(struct origin *origin)
{
    json_decref(origin->config);
    *origin = (struct origin){0};
}

static void keep_keys(const struct origin *origin, const char *const *keys, json_t *config)
{
    json_t *value;
    for (; *keys; keys++)
        if ((value = json_object_get(origin->config, *keys)))
            json_object_set(config, *keys, value);
}

/* Other types of a family differ in windows: Mistral's from LLaMA's. */
void origin_keep(const struct origin *origin, json_t *config)
{
    static const char *const tokens[] = {"bos_token_id", "eos_token_id", "pad_token_id", NULL};
    static const char *const windows[] = {"sliding_window", "use_sliding_window",
                                          "max_window_layers", "layer_types", NULL};
    static const char *const types[] = {"model_type", "architectures", NULL};
    static const char *const lengths[] = {"max_position_embeddings", NULL};
    if (origin->same_tokens)
        keep_keys(origin, tokens, config);
    keep_keys(origin, windows, config);
    if (!json_equal(json_object_get(config, types[0]), json_object_get(origin->config, types[0])))
        keep_keys(origin, types, config);
    /* Where positions are weights, it is their number, and no key of ours has this name. */
    if (json_object_get(config, lengths[0]))
        keep_keys(origin, lengths, config);
}

static int copy_file(const char *from, const char *to, const char *name, struct error *err)
{
    char *source = xasprintf("%s/%s", from, name), *target = xasprintf("%s/%s", to, name);
    struct file file;
    int rc = file_map(source, &file, err);
    if (rc == 0) {
        FILE *out = fopen(target, "wxe");
        bool written = out && fwrite(file.map, 1, file.size, out) == file.size &&
                       fflush(out) == 0 && fsync(fileno(out)) == 0;
        if (!written)
            rc = error_set(err, -errno, "write '%s': %s", target, strerror(errno));
        if (out)
            fclose(out);
        file_unmap(&file);
    }
    free(source);
    free(target);
    return rc;
}

static int copy_files(const struct origin *origin, const char *const *names, const char *folder,
                      struct error *err)
{
    int rc = 0;
    for (; *names && rc == 0; names++)
        if (tensor_files_has(origin->folder, *names))
            rc = copy_file(origin->folder, folder, *names, err);
    return rc;
}

int origin_copy(const struct origin *origin, bool tokenizer, const char *folder, struct error *err)
{
    static const char *const settings[] = {"generation_config.json",  "chat_template.jinja",
                                           "chat_template.json",      ORIGIN_SETTINGS,
                                           "special_tokens_map.json", NULL};
    static const char *const tokenizers[] = {ORIGIN_TOKENIZER, "tokenizer.model",   "vocab.json",
                                             "merges.txt",     "added_tokens.json", NULL};
    if (!origin->same_tokens)
        return 0;
    int rc = copy_files(origin, settings, folder, err);
    return rc == 0 && tokenizer ? copy_files(origin, tokenizers, folder, err) : rc;
}
