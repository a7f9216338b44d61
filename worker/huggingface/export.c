/* export.c - writes the files into a draft folder, which is renamed once it is complete: the
 * weights one tensor after another, each put together from what the ranks have saved. */
#include "worker/huggingface/export.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/models/huggingface.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/huggingface/origin.h"
#include "worker/huggingface/tensor_files.h"
#include "worker/tokenizer/tokenizer.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t bytes_of(const struct huggingface_tensor *tensor, enum element element)
{
    return (uint64_t)huggingface_count(tensor) * element_size(element);
}

/* The beginning of the file, which the caller frees. transformers requires "format". */
static char *print_header(const struct huggingface_tensor *tensors, size_t count,
                          enum element element, size_t *size)
{
    json_t *root = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    uint64_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = bytes_of(&tensors[i], element);
        json_object_set_new(
            root, tensors[i].name,
            safetensors_entry(element, tensors[i].shape, tensors[i].axes, offset, bytes));
        offset += bytes;
    }
    char *json = json_dumps(root, JSON_COMPACT);
    char *header = safetensors_frame(json, size);
    free(json);
    json_decref(root);
    return header;
}

/* Allocate memory for a tensor; the caller frees *out. */
static int allocate(const struct huggingface_tensor *tensor, uint64_t bytes, float **out,
                    struct error *err)
{
    *out = malloc(bytes);
    return *out ? 0
                : error_set(err, -ENOBUFS, "no %" PRIu64 " bytes of memory for '%s'", bytes,
                            tensor->name);
}

static int gather_tensor(struct checkpoint *checkpoint, const struct graph *graph,
                         const struct huggingface_tensor *tensor, float *theirs, struct error *err)
{
    int rc = 0;
    for (int i = 0; i < tensor->part_count && rc == 0; i++) {
        const struct huggingface_part *part = &tensor->parts[i];
        float *ours = NULL;
        rc = allocate(tensor, (uint64_t)box_count(&part->whole) * sizeof *ours, &ours, err);
        if (rc == 0)
            rc = checkpoint_load(checkpoint, graph->tensors[part->tensor].name, STATE_WEIGHT,
                                 &part->whole, ours, err);
        if (rc == 0)
            huggingface_put(part, ours, theirs);
        free(ours);
    }
    return rc;
}

static bool is_told_to_end(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
}

static int write_bytes(FILE *file, const char *path, const void *bytes, size_t size,
                       struct error *err)
{
    return fwrite(bytes, 1, size, file) == size
               ? 0
               : error_set(err, -errno, "write '%s': %s", path, strerror(errno));
}

/* In place; an element is never behind where it came from. */
static void narrow(float *values, int64_t count)
{
    uint16_t *out = (uint16_t *)(void *)values;
    for (int64_t i = 0; i < count; i++) {
        uint16_t rounded = bf16_narrow(values[i]);
        memcpy(out + i, &rounded, sizeof rounded);
    }
}

static int write_tensor(struct checkpoint *checkpoint, const struct graph *graph,
                        const struct huggingface_tensor *tensor, enum element element, FILE *file,
                        const char *path, struct error *err)
{
    int64_t count = huggingface_count(tensor);
    float *theirs = NULL;
    if (is_told_to_end())
        return error_set(err, -ECANCELED, "the export was told to end");
    int rc = allocate(tensor, (uint64_t)count * sizeof *theirs, &theirs, err);
    if (rc == 0)
        rc = gather_tensor(checkpoint, graph, tensor, theirs, err);
    if (rc == 0 && element == ELEMENT_BF16)
        narrow(theirs, count);
    if (rc == 0)
        rc = write_bytes(file, path, theirs, bytes_of(tensor, element), err);
    free(theirs);
    return rc;
}

int weights_write(struct checkpoint *checkpoint, const struct graph *graph,
                  const struct huggingface_tensor *tensors, size_t count, enum element element,
                  const char *path, uint64_t *bytes, struct error *err)
{
    size_t size;
    FILE *file = fopen(path, "wxe");
    if (!file)
        return error_set(err, -errno, "write '%s': %s", path, strerror(errno));
    char *header = print_header(tensors, count, element, &size);
    int rc = write_bytes(file, path, header, size, err);
    *bytes = size;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = write_tensor(checkpoint, graph, &tensors[i], element, file, path, err);
        *bytes += bytes_of(&tensors[i], element);
    }
    if (rc == 0 && (fflush(file) != 0 || fsync(fileno(file)) < 0))
        rc = error_set(err, -errno, "write '%s': %s", path, strerror(errno));
    if (fclose(file) != 0 && rc == 0)
        rc = error_set(err, -errno, "write '%s': %s", path, strerror(errno));
    free(header);
    return rc;
}

static const char weights_name[] = "model.safetensors";
static const char config_name[] = "config.json";

/* What is exported, and the layout that transformers has for it. */
struct source {
    struct job_config *job;
    struct graph *graph;
    struct checkpoint *checkpoint;
    struct tokenizer *tokenizer; /* NULL: nobody knows it */
    struct origin origin;        /* where the model came from before it was trained */
    struct huggingface_tensor *tensors;
    size_t tensor_count;
    enum element element;
    json_t *theirs; /* its config.json */
};

/* The config.json, with what does not follow from the job. */
static json_t *describe(const struct source *source)
{
    json_t *root = huggingface_config(&source->job->model, source->graph);
    int32_t end = source->tokenizer ? tokenizer_end(source->tokenizer) : -1;
    if (end >= 0)
        json_object_set_new(root, "eos_token_id", json_integer(end));
    if (source->element == ELEMENT_BF16)
        json_object_set_new(root, "torch_dtype", json_string("bfloat16"));
    origin_keep(&source->origin, root);
    return root;
}

static int source_open(const struct export_request *request, struct source *out, struct error *err)
{
    *out = (struct source){.element = request->element};
    int rc = job_config_load(request->job, &out->job, err);
    if (rc < 0)
        return rc;
    const struct job_model *model = &out->job->model;
    rc = model_build(model, out->job->train.dtype, &out->graph, err);
    if (rc == 0)
        rc = huggingface_tensors(model, out->graph, &out->tensors, &out->tensor_count, err);
    if (rc == 0)
        rc = tokenizer_open_job(out->job, &out->tokenizer, err);
    if (rc < 0)
        return rc;
    origin_open(out->job, out->graph, out->tokenizer, &out->origin);
    out->theirs = describe(out);
    rc = checkpoint_open(request->checkpoint, &out->checkpoint, err);
    if (rc == 0)
        rc = manifest_compare(checkpoint_manifest(out->checkpoint), out->graph, err);
    return rc < 0 ? error_prefix(err, rc, "checkpoint '%s'", request->checkpoint) : 0;
}

static void source_close(struct source *source)
{
    huggingface_free(source->tensors, source->tensor_count);
    json_decref(source->theirs);
    origin_finish(&source->origin);
    checkpoint_close(source->checkpoint);
    tokenizer_close(source->tokenizer);
    graph_destroy(source->graph);
    job_config_destroy(source->job);
}

/* Write a text to a file, and free the text. */
static int write_text(const char *folder, const char *name, char *text, struct error *err)
{
    char *path = xasprintf("%s/%s", folder, name);
    int rc = file_write(path, text, 0666, err);
    free(path);
    free(text);
    return rc;
}

/* For texts as long as the model was made for; freed by the caller. */
static char *print_tokenizer_config(const struct source *source)
{
    size_t size;
    const char *end = tokenizer_name_of(source->tokenizer, tokenizer_end(source->tokenizer), &size);
    const json_t *length = json_object_get(source->theirs, "max_position_embeddings");
    json_t *root = json_pack(
        "{s:s, s:I, s:b}", "tokenizer_class", "PreTrainedTokenizerFast", "model_max_length",
        length ? json_integer_value(length) : (json_int_t)source->job->model.seq,
        "clean_up_tokenization_spaces", false);
    if (end)
        json_object_set_new(root, "eos_token", json_stringn(end, size));
    char *text = json_dumps(root, JSON_INDENT(2));
    json_decref(root);
    return text;
}

/* With the settings that it has where the model came from, or else ours. */
static int write_tokenizer(const struct source *source, const char *folder, struct error *err)
{
    char *json;
    int rc = tokenizer_json(source->tokenizer, &json, err);
    if (rc == 0)
        rc = write_text(folder, ORIGIN_TOKENIZER, json, err);
    return rc < 0 || tensor_files_has(folder, ORIGIN_SETTINGS)
               ? rc
               : write_text(folder, ORIGIN_SETTINGS, print_tokenizer_config(source), err);
}

static int write_files(const struct source *source, const char *folder, uint64_t *bytes,
                       struct error *err)
{
    char *path = xasprintf("%s/%s", folder, weights_name);
    int rc = weights_write(source->checkpoint, source->graph, source->tensors, source->tensor_count,
                           source->element, path, bytes, err);
    free(path);
    if (rc == 0)
        rc = write_text(folder, config_name, huggingface_print(source->theirs), err);
    if (rc == 0)
        rc = origin_copy(&source->origin, !source->tokenizer, folder, err);
    return rc == 0 && source->tokenizer ? write_tokenizer(source, folder, err) : rc;
}

/* With all its files, which we have written. */
static void delete_draft(const char *folder)
{
    DIR *open = opendir(folder);
    struct dirent *entry;
    while (open && (entry = readdir(open)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(open), entry->d_name, 0);
    if (open)
        closedir(open);
    rmdir(folder);
}

/* A draft that exists already belongs to another export, which may still be running. */
static int make_draft(const char *out, const char *draft, struct error *err)
{
    char *above = xstrdup(out);
    int rc = folder_make_mode(dirname(above), 0777, err);
    free(above);
    if (rc < 0)
        return rc;
    if (mkdir(draft, 0777) == 0)
        return 0;
    if (errno == EEXIST)
        return error_set(err, -EEXIST,
                         "'%s' is there: another export writes it, or was killed; delete it then",
                         draft);
    return error_set(err, -errno, "make the folder '%s': %s", draft, strerror(errno));
}

static int publish_draft(const char *draft, const char *out, struct error *err)
{
    if (rename(draft, out) < 0)
        return error_set(err, -errno, "rename '%s' to '%s': %s", draft, out, strerror(errno));
    int rc = folder_sync_above(out);
    return rc < 0 ? error_set(err, rc, "keep '%s': %s", out, strerror(-rc)) : 0;
}

static void say_what(const struct export_request *request, const struct source *source,
                     uint64_t bytes, FILE *say)
{
    const struct manifest_origin *origin = &checkpoint_manifest(source->checkpoint)->origin;
    const struct origin *from = &source->origin;
    bool kept = from->same_tokens && tensor_files_has(from->folder, ORIGIN_TOKENIZER);
    const char *tokenizer =
        !source->tokenizer && kept          ? "with the tokenizer that its weights came with"
        : !source->tokenizer                ? "without a tokenizer: add that of the data"
        : tokenizer_path(source->tokenizer) ? "with the tokenizer of its data"
                                            : "with a tokenizer: a token is a byte";
    char size[32];
    fprintf(say, "%s: step %" PRIu64 " of %s as %s, %zu tensors, %s, %s", request->out,
            origin->step, origin->job, source->job->model.family, source->tensor_count,
            units_print_bytes(size, sizeof size, (double)bytes), tokenizer);
    if (from->same_tokens)
        fprintf(say, ", and what '%s' says of texts and chats", from->folder);
    else if (from->folder)
        fprintf(say, ", without what '%s' says of texts and chats: %s", from->folder,
                from->config ? "its tokens are others" : "it is not there as it was");
    fputc('\n', say);
}

static int export_to(const struct export_request *request, FILE *say, struct error *err)
{
    struct source source;
    uint64_t bytes = 0;
    char *draft = xasprintf("%s.part", request->out);
    bool drafted = false;
    int rc = access(request->out, F_OK) == 0
                 ? error_set(err, -EEXIST, "'%s' is there already: name a folder that is not",
                             request->out)
                 : 0;
    source = (struct source){0};
    if (rc == 0)
        rc = source_open(request, &source, err);
    if (rc == 0)
        rc = make_draft(request->out, draft, err);
    if (rc == 0) {
        drafted = true;
        rc = write_files(&source, draft, &bytes, err);
    }
    if (rc == 0)
        rc = publish_draft(draft, request->out, err);
    if (rc == 0)
        say_what(request, &source, bytes, say);
    else if (drafted)
        delete_draft(draft);
    source_close(&source);
    free(draft);
    return rc;
}

/* Strip trailing slashes, so that the draft of "model/" is beside it and not inside. */
int export_run(const struct export_request *request, FILE *say, struct error *err)
{
    struct export_request plain = *request;
    size_t size = strlen(request->out);
    while (size > 1 && request->out[size - 1] == '/')
        size--;
    char *out = xasprintf("%.*s", (int)size, request->out);
    plain.out = out;
    int rc = export_to(&plain, say, err);
    free(out);
    return rc;
}
