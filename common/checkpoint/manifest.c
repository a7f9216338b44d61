/* manifest.c - the manifest as JSON. 64-bit hashes and seeds are hexadecimal text, because most
 * readers of JSON would round such numbers. */
#include "common/checkpoint/manifest.h"

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API_VERSION "gimbal/v1"

static void origin_copy_files(struct manifest_origin *to, const struct manifest_origin *from)
{
    struct manifest_file *files = xcalloc(from->file_count, sizeof *files);
    for (size_t i = 0; i < from->file_count; i++) {
        files[i] = from->files[i];
        files[i].path = xstrdup(from->files[i].path);
    }
    to->files = files;
}

void manifest_init(struct manifest *manifest, const struct manifest_origin *origin,
                   const struct graph *graph)
{
    size_t capacity = 0;
    *manifest = (struct manifest){.origin = *origin};
    origin_copy_files(&manifest->origin, origin);
    manifest->origin.job = xstrdup(origin->job);
    manifest->origin.spec = origin->spec ? xstrdup(origin->spec) : NULL;
    for (size_t t = 0; t < graph->tensor_count; t++) {
        const struct tensor *tensor = &graph->tensors[t];
        if (tensor->kind != TENSOR_WEIGHT)
            continue;
        manifest->tensors =
            grow(manifest->tensors, manifest->tensor_count, &capacity, sizeof *manifest->tensors);
        manifest->tensors[manifest->tensor_count++] =
            (struct manifest_tensor){xstrdup(tensor->name), tensor_box(tensor, 0)};
    }
}

void manifest_finish(struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->tensor_count; i++)
        free(manifest->tensors[i].name);
    for (size_t i = 0; i < manifest->shard_count; i++)
        free(manifest->shards[i].file);
    free(manifest->tensors);
    free(manifest->shards);
    free((char *)manifest->origin.job);
    free((char *)manifest->origin.spec);
    for (size_t i = 0; i < manifest->origin.file_count; i++)
        free(manifest->origin.files[i].path);
    free((struct manifest_file *)manifest->origin.files);
    *manifest = (struct manifest){0};
}

void manifest_add(struct manifest *manifest, const struct manifest_shard *shard)
{
    manifest->shards = grow(manifest->shards, manifest->shard_count, &manifest->shard_capacity,
                            sizeof *manifest->shards);
    manifest->shards[manifest->shard_count] = *shard;
    manifest->shards[manifest->shard_count++].file = xstrdup(shard->file);
}

uint64_t manifest_fingerprint(const struct manifest *manifest)
{
    uint64_t hash = hash_text(HASH_START, "F32");
    for (size_t i = 0; i < manifest->tensor_count; i++) {
        const struct manifest_tensor *tensor = &manifest->tensors[i];
        hash = hash_text(hash, tensor->name);
        for (int dim = 0; dim < tensor->whole.dims; dim++)
            hash = hash_number(hash, (uint64_t)tensor->whole.high[dim]);
    }
    return hash;
}

static json_t *print_hex(uint64_t number)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, number);
    return json_string(text);
}

static json_t *print_tensors(const struct manifest *manifest)
{
    json_t *tensors = json_object();
    for (size_t i = 0; i < manifest->tensor_count; i++) {
        json_t *shape = json_array();
        for (int dim = 0; dim < manifest->tensors[i].whole.dims; dim++)
            json_array_append_new(shape, json_integer(manifest->tensors[i].whole.high[dim]));
        json_object_set_new(tensors, manifest->tensors[i].name, shape);
    }
    return tensors;
}

static json_t *print_files(const struct manifest_origin *origin)
{
    json_t *files = json_array();
    for (size_t i = 0; i < origin->file_count; i++)
        json_array_append_new(files, json_pack("{s:s, s:I, s:o}", "path", origin->files[i].path,
                                               "size", (json_int_t)origin->files[i].size, "hash",
                                               print_hex(origin->files[i].hash)));
    return files;
}

static json_t *print_shards(const struct manifest *manifest)
{
    json_t *shards = json_array();
    for (size_t i = 0; i < manifest->shard_count; i++) {
        const struct manifest_shard *shard = &manifest->shards[i];
        json_array_append_new(shards,
                              json_pack("{s:s, s:I, s:o, s:o}", "file", shard->file, "size",
                                        (json_int_t)shard->size, "xxh3", print_hex(shard->checksum),
                                        "header_xxh3", print_hex(shard->header)));
    }
    return shards;
}

int manifest_write(const struct manifest *manifest, const char *folder, struct error *err)
{
    const struct manifest_origin *origin = &manifest->origin;
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s*, s:I, s:I, s:{s:o, s:s, s:o}, s:{s:o, s:I, s:I, s:o}, s:o}",
        "apiVersion", API_VERSION, "kind", "Checkpoint", "job", origin->job, "spec", origin->spec,
        "epoch", (json_int_t)origin->epoch, "step", (json_int_t)origin->step, "model",
        "fingerprint", print_hex(manifest_fingerprint(manifest)), "dtype", "F32", "tensors",
        print_tensors(manifest), "data", "seed", print_hex(origin->seed), "global_batch",
        (json_int_t)origin->batch, "samples", (json_int_t)origin->samples, "files",
        print_files(origin), "shards", print_shards(manifest));
    char *text = json_dumps(root, JSON_INDENT(1));
    char *path = xasprintf("%s/" MANIFEST_NAME, folder);
    int rc = file_write(path, text, 0666, err);
    free(path);
    free(text);
    json_decref(root);
    return rc;
}

/* Parse text of 16 hexadecimal digits. */
static bool read_hex(const char *text, uint64_t *out)
{
    char rest;
    return strlen(text) == 16 && sscanf(text, "%16" SCNx64 "%c", out, &rest) == 1;
}

static int parse_shape(const char *name, const json_t *shape, struct box *whole, struct error *err)
{
    size_t dims = json_array_size(shape);
    int64_t bytes = sizeof(float);
    if (!json_is_array(shape) || dims > DIMS_MAX)
        return error_set(err, -EINVAL, "model.tensors.%.100s: no list of up to %d lengths", name,
                         DIMS_MAX);
    *whole = (struct box){.dims = (int)dims};
    for (size_t dim = 0; dim < dims; dim++) {
        const json_t *length = json_array_get(shape, dim);
        whole->high[dim] = json_integer_value(length);
        if (!json_is_integer(length) || whole->high[dim] < 1)
            return error_set(err, -EINVAL,
                             "model.tensors.%.100s: length %zu is no whole number of 1 or more",
                             name, dim);
        if (__builtin_mul_overflow(bytes, whole->high[dim], &bytes))
            return error_set(err, -EINVAL,
                             "model.tensors.%.100s: no file holds a tensor of this shape, at most "
                             "%" PRId64 " elements would be right",
                             name, INT64_MAX / (int64_t)sizeof(float));
    }
    return 0;
}

static int parse_tensors(json_t *tensors, struct manifest *out, struct error *err)
{
    const char *name;
    json_t *shape;
    size_t capacity = 0;
    if (json_object_size(tensors) == 0)
        return error_set(err, -EINVAL, "model.tensors names no tensor");
    json_object_foreach(tensors, name, shape)
    {
        struct box whole;
        int rc = parse_shape(name, shape, &whole, err);
        if (rc < 0)
            return rc;
        out->tensors = grow(out->tensors, out->tensor_count, &capacity, sizeof *out->tensors);
        out->tensors[out->tensor_count++] = (struct manifest_tensor){xstrdup(name), whole};
    }
    return 0;
}

static int parse_shards(json_t *shards, struct manifest *out, struct error *err)
{
    json_t *item;
    size_t i;
    json_array_foreach(shards, i, item)
    {
        const char *file, *checksum, *header;
        json_int_t size;
        struct manifest_shard shard;
        if (json_unpack(item, "{s:s, s:I, s:s, s:s}", "file", &file, "size", &size, "xxh3",
                        &checksum, "header_xxh3", &header) < 0 ||
            size < 0 || !read_hex(checksum, &shard.checksum) || !read_hex(header, &shard.header))
            return error_set(err, -EINVAL, "shards[%zu]: no file, size, xxh3 and header_xxh3", i);
        if (!file[0] || strchr(file, '/'))
            return error_set(err, -EINVAL, "shards[%zu]: '%.100s' is no file of this folder", i,
                             file);
        shard.file = (char *)file;
        shard.size = (uint64_t)size;
        manifest_add(out, &shard);
    }
    return 0;
}

/* Up to the first that is not as we write them: they are told of, and nothing rests on them. */
static void parse_files(const json_t *list, struct manifest_origin *out)
{
    size_t count = json_array_size(list);
    struct manifest_file *files = xcalloc(count, sizeof *files);
    out->files = files;
    for (; out->file_count < count; out->file_count++) {
        struct manifest_file *file = &files[out->file_count];
        const char *path, *hash;
        json_int_t size;
        if (json_unpack(json_array_get(list, out->file_count), "{s:s, s:I, s:s}", "path", &path,
                        "size", &size, "hash", &hash) < 0 ||
            !read_hex(hash, &file->hash))
            break;
        file->path = xstrdup(path);
        file->size = (uint64_t)size;
    }
}

static int manifest_parse(json_t *root, struct manifest *out, struct error *err)
{
    const char *version, *kind, *job, *spec = NULL, *fingerprint, *seed;
    json_int_t epoch, step, batch, samples = -1; /* very early releases did not write them */
    json_t *tensors, *shards, *files = NULL;
    uint64_t told;
    if (json_unpack(root, "{s:s, s:s}", "apiVersion", &version, "kind", &kind) < 0 ||
        strcmp(kind, "Checkpoint") != 0)
        return error_set(err, -EINVAL, "it is no manifest of a checkpoint");
    if (strcmp(version, API_VERSION) != 0)
        return error_set(err, -EINVAL, "its apiVersion is '%.40s', this release reads '%s'",
                         version, API_VERSION);
    if (json_unpack(root, "{s:s, s?s, s:I, s:I, s:{s:s, s:o}, s:{s:s, s:I, s?I, s?o}, s:o}", "job",
                    &job, "spec", &spec, "epoch", &epoch, "step", &step, "model", "fingerprint",
                    &fingerprint, "tensors", &tensors, "data", "seed", &seed, "global_batch",
                    &batch, "samples", &samples, "files", &files, "shards", &shards) < 0 ||
        epoch < 0 || step < 0 || batch < 0 || !read_hex(seed, &out->origin.seed) ||
        !read_hex(fingerprint, &told))
        return error_set(err, -EINVAL,
                         "job, epoch, step, model, data or shards are missing or no such thing");
    out->origin.job = xstrdup(job);
    out->origin.spec = spec ? xstrdup(spec) : NULL;
    out->origin.samples = samples < 0 ? (uint64_t)(step * batch) : (uint64_t)samples;
    parse_files(files, &out->origin);
    out->origin.epoch = (uint64_t)epoch;
    out->origin.step = (uint64_t)step;
    out->origin.batch = (uint64_t)batch;
    int rc = parse_tensors(tensors, out, err);
    if (rc == 0)
        rc = parse_shards(shards, out, err);
    if (rc == 0 && manifest_fingerprint(out) != told)
        rc = error_set(err, -EINVAL, "model.fingerprint is not that of model.tensors");
    return rc;
}

int manifest_read(const char *folder, struct manifest *out, struct error *err)
{
    char *path = xasprintf("%s/" MANIFEST_NAME, folder), *text = NULL;
    json_error_t error;
    struct manifest manifest = {0};
    int rc = file_read(path, &text, err);
    if (rc == 0) {
        json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
        rc = root ? manifest_parse(root, &manifest, err)
                  : error_set(err, -EINVAL, "line %d: %s", error.line, error.text);
        json_decref(root);
        if (rc < 0)
            error_prefix(err, rc, "%s", path);
    }
    if (rc < 0)
        manifest_finish(&manifest);
    else
        *out = manifest;
    free(text);
    free(path);
    return rc;
}

static int compare_tensor(const struct manifest_tensor *here, const struct manifest_tensor *there,
                          struct error *err)
{
    char want[96], have[96];
    if (strcmp(here->name, there->name) != 0)
        return error_set(err, -EINVAL, "another model: '%.100s' is in the place of '%.100s'",
                         there->name, here->name);
    if (box_equal(&here->whole, &there->whole))
        return 0;
    return error_set(err, -EINVAL, "another model: '%.100s' is %s, %s would be right", here->name,
                     box_print(have, sizeof have, &there->whole),
                     box_print(want, sizeof want, &here->whole));
}

int manifest_compare(const struct manifest *manifest, const struct graph *graph, struct error *err)
{
    struct manifest own;
    manifest_init(&own, &manifest->origin, graph);
    int rc = 0;
    for (size_t i = 0; i < own.tensor_count && i < manifest->tensor_count && rc == 0; i++)
        rc = compare_tensor(&own.tensors[i], &manifest->tensors[i], err);
    if (rc == 0 && own.tensor_count != manifest->tensor_count)
        rc = error_set(err, -EINVAL, "another model: it has %zu tensors, %zu would be right",
                       manifest->tensor_count, own.tensor_count);
    manifest_finish(&own);
    return rc;
}
