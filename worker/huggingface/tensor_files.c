/* tensor_files.c - parses headers. They may come from anywhere, so nothing in them is used before
 * it has been checked against the size of the file. */
#include "worker/huggingface/tensor_files.h"

#include "common/base/element.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/tokenizer/byte_buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHOLE_NAME "model.safetensors"
#define INDEX_NAME "model.safetensors.index.json"

static const struct {
    const char *name;
    uint64_t bytes;
} dtypes[] = {[DTYPE_F32] = {"F32", 4}, [DTYPE_BF16] = {"BF16", 2}, [DTYPE_F16] = {"F16", 2}};

static enum tensor_dtype find_dtype(const char *name)
{
    for (int i = 0; i < DTYPE_FOREIGN; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return (enum tensor_dtype)i;
    return DTYPE_FOREIGN;
}

bool tensor_files_has(const char *folder, const char *name)
{
    char *path = xasprintf("%s/%s", folder, name);
    bool has = access(path, F_OK) == 0;
    free(path);
    return has;
}

/* Outside of strings, write the words of Python as objects. */
static char *mend_numbers(const char *text)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    struct byte_buffer out = {0};
    bool quoted = false;
    while (*text) {
        size_t size = 0;
        for (size_t i = 0; !quoted && i < sizeof words / sizeof *words && size == 0; i++)
            if (strncmp(text, words[i], strlen(words[i])) == 0)
                size = strlen(words[i]);
        if (size) {
            byte_buffer_add(&out, "{\"__float__\":\"", 14);
            byte_buffer_add(&out, text, size);
            byte_buffer_add(&out, "\"}", 2);
            text += size;
            continue;
        }
        if (quoted && *text == '\\' && text[1])
            byte_buffer_add(&out, text++, 1);
        else if (*text == '"')
            quoted = !quoted;
        byte_buffer_add(&out, text++, 1);
    }
    byte_buffer_add(&out, "", 1);
    return out.bytes;
}

int tensor_files_json(const char *folder, const char *name, json_t **out, struct error *err)
{
    json_error_t error;
    char *path = xasprintf("%s/%s", folder, name), *text = NULL, *mended = NULL;
    int rc = file_read(path, &text, err);
    if (rc == 0)
        mended = mend_numbers(text);
    if (rc == 0 && !(*out = json_loads(mended, JSON_REJECT_DUPLICATES, &error)))
        rc = error_set(err, -EINVAL, "'%s' is no JSON: %s", path, error.text);
    free(mended);
    free(text);
    free(path);
    return rc;
}

/* Parse a shape. -EINVAL if it has more than `most` elements, which is more than the file could
 * hold. */
static int read_shape(const json_t *shape, uint64_t most, struct foreign_tensor *out,
                      uint64_t *count)
{
    size_t axes = json_array_size(shape);
    if (!json_is_array(shape))
        return -EINVAL;
    out->axes = axes > DIMS_MAX ? DIMS_MAX + 1 : (int)axes;
    *count = 1;
    for (size_t i = 0; i < axes; i++) {
        json_int_t length = json_integer_value(json_array_get(shape, i));
        if (length < 0 || __builtin_mul_overflow(*count, (uint64_t)length, count) || *count > most)
            return -EINVAL;
        if (i < DIMS_MAX)
            out->shape[i] = length;
    }
    return 0;
}

static int read_tensor(const struct tensor_file *file, const char *name, json_t *entry,
                       uint64_t start, struct foreign_tensor *out, struct error *err)
{
    const char *dtype;
    json_t *shape;
    json_int_t begin, end;
    uint64_t size = file->file.size - start, count;
    if (json_unpack(entry, "{s:s, s:o, s:[I, I!]}", "dtype", &dtype, "shape", &shape,
                    "data_offsets", &begin, &end) < 0)
        return error_set(err, -EINVAL, "'%s': %.100s has no dtype, shape and data_offsets",
                         file->path, name);
    if (begin < 0 || end < begin || (uint64_t)end > size ||
        read_shape(shape, size, out, &count) < 0)
        return error_set(err, -EINVAL,
                         "'%s': %.100s lies outside of the file, which has %" PRIu64
                         " bytes of data",
                         file->path, name, size);
    out->dtype = find_dtype(dtype);
    snprintf(out->dtype_name, sizeof out->dtype_name, "%s", dtype);
    if (out->dtype != DTYPE_FOREIGN && count * dtypes[out->dtype].bytes != (uint64_t)(end - begin))
        return error_set(err, -EINVAL, "'%s': shape and bytes of %.100s disagree", file->path,
                         name);
    out->data = (const unsigned char *)file->file.map + start + begin;
    out->name = xstrdup(name);
    return 0;
}

static int read_tensors(const struct tensor_file *file, json_t *header, uint64_t start,
                        struct tensor_files *out, struct error *err)
{
    const char *name;
    json_t *entry;
    int rc = 0;
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        struct foreign_tensor tensor = {0};
        rc = read_tensor(file, name, entry, start, &tensor, err);
        if (rc < 0)
            break;
        out->tensors =
            grow(out->tensors, out->tensor_count, &out->tensor_capacity, sizeof *out->tensors);
        out->tensors[out->tensor_count++] = tensor;
    }
    return rc;
}

static int read_header(const struct tensor_file *file, struct tensor_files *out, struct error *err)
{
    const unsigned char *bytes = file->file.map;
    uint64_t length, size = file->file.size;
    json_error_t error;
    if (!safetensors_length(bytes, size, &length))
        return error_set(err, -EINVAL,
                         "'%s' is no safetensors file: its header of %" PRIu64
                         " bytes is not in its %" PRIu64 " bytes",
                         file->path, length, size);
    json_t *header = json_loadb((const char *)bytes + SAFETENSORS_LENGTH_BYTES, length,
                                JSON_REJECT_DUPLICATES, &error);
    if (!header)
        return error_set(err, -EINVAL, "'%s' is no safetensors file: %s", file->path, error.text);
    int rc = read_tensors(file, header, SAFETENSORS_LENGTH_BYTES + length, out, err);
    json_decref(header);
    return rc;
}

static int open_tensor_file(const char *folder, const char *name, struct tensor_files *out,
                            struct error *err)
{
    for (size_t i = 0; i < out->file_count; i++)
        if (strcmp(strrchr(out->files[i].path, '/') + 1, name) == 0)
            return 0;
    if (strchr(name, '/') || out->file_count == TENSOR_FILES_MAX)
        return error_set(err, -EINVAL,
                         "'%s/" INDEX_NAME "' names '%.100s': names of at most %d files in the "
                         "folder itself would be right",
                         folder, name, TENSOR_FILES_MAX);
    struct tensor_file *file = &out->files[out->file_count];
    file->path = xasprintf("%s/%s", folder, name);
    out->file_count++;
    int rc = file_map(file->path, &file->file, err);
    return rc == 0 ? read_header(file, out, err) : rc;
}

static int open_index(const char *folder, struct tensor_files *out, struct error *err)
{
    json_t *index = NULL, *file;
    const char *name;
    int rc = tensor_files_json(folder, INDEX_NAME, &index, err);
    if (rc < 0)
        return rc;
    json_t *map = json_object_get(index, "weight_map");
    if (!json_is_object(map))
        rc = error_set(err, -EINVAL, "'%s/" INDEX_NAME "' has no weight_map", folder);
    json_object_foreach(map, name, file)
    {
        if (rc == 0 && !json_is_string(file))
            rc = error_set(err, -EINVAL, "'%s/" INDEX_NAME "': weight_map.%.100s names no file",
                           folder, name);
        if (rc == 0)
            rc = open_tensor_file(folder, json_string_value(file), out, err);
    }
    json_decref(index);
    return rc;
}

/* Where there are no safetensors, weights may be in another format. */
static int refuse_formats(const char *folder, struct error *err)
{
    static const char *const names[] = {"pytorch_model.bin",
                                        "pytorch_model.bin.index.json",
                                        "adapter_model.safetensors",
                                        "consolidated.safetensors",
                                        "consolidated.00.pth",
                                        "tf_model.h5",
                                        "flax_model.msgpack",
                                        "model.gguf",
                                        NULL};
    for (int i = 0; names[i]; i++)
        if (tensor_files_has(folder, names[i]))
            return error_set(err, -EINVAL,
                             "it has %s, and no " WHOLE_NAME
                             ": that or several files with " INDEX_NAME
                             " are read, as save_pretrained() of transformers writes "
                             "them",
                             names[i]);
    return 0;
}

int tensor_files_open(const char *folder, struct tensor_files *out, struct error *err)
{
    *out = (struct tensor_files){.files = xcalloc(TENSOR_FILES_MAX, sizeof *out->files)};
    if (tensor_files_has(folder, INDEX_NAME))
        return open_index(folder, out, err);
    int rc = tensor_files_has(folder, WHOLE_NAME) ? 0 : refuse_formats(folder, err);
    return rc == 0 ? open_tensor_file(folder, WHOLE_NAME, out, err) : rc;
}

void tensor_files_finish(struct tensor_files *files)
{
    for (size_t i = 0; i < files->tensor_count; i++)
        free(files->tensors[i].name);
    for (size_t i = 0; i < files->file_count; i++) {
        file_unmap(&files->files[i].file);
        free(files->files[i].path);
    }
    free(files->tensors);
    free(files->files);
    *files = (struct tensor_files){0};
}

const struct foreign_tensor *tensor_files_find(const struct tensor_files *files, const char *name)
{
    for (size_t i = 0; i < files->tensor_count; i++)
        if (strcmp(files->tensors[i].name, name) == 0)
            return &files->tensors[i];
    return NULL;
}

bool foreign_equal(const struct foreign_tensor *a, const struct foreign_tensor *b)
{
    uint64_t bytes = dtypes[a->dtype].bytes;
    for (int i = 0; i < a->axes; i++)
        bytes *= (uint64_t)a->shape[i];
    return a->dtype == b->dtype && memcmp(a->data, b->data, bytes) == 0;
}

/* From IEEE half precision. */
static float f16_widen(uint16_t narrow)
{
    uint32_t sign = (uint32_t)(narrow & 0x8000) << 16, exponent = narrow >> 10 & 0x1f;
    uint32_t fraction = narrow & 0x3ff;
    uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
    float wide;
    if (exponent == 0x1f) /* NaN or infinite */
        bits = sign | 0x7f800000 | fraction << 13;
    memcpy(&wide, &bits, sizeof wide);
    if (exponent == 0) /* subnormal: a multiple of the smallest */
        wide = (sign ? -0x1p-24f : 0x1p-24f) * (float)fraction;
    return wide;
}

float foreign_element(const struct foreign_tensor *tensor, int64_t index)
{
    if (tensor->dtype == DTYPE_F32) {
        float wide;
        memcpy(&wide, tensor->data + index * (int64_t)sizeof wide, sizeof wide);
        return wide;
    }
    uint16_t narrow;
    memcpy(&narrow, tensor->data + index * (int64_t)sizeof narrow, sizeof narrow);
    return tensor->dtype == DTYPE_BF16 ? bf16_widen(narrow) : f16_widen(narrow);
}
