/* weights.c - writes one tensor after another, each put together from what the ranks have saved. */
#include "worker/export/weights.h"

#include "worker/checkpoint/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t bytes_of(const struct huggingface_tensor *tensor)
{
    return (uint64_t)huggingface_count(tensor) * sizeof(float);
}

/* The beginning of the file, which the caller frees. transformers requires "format". */
static char *print_header(const struct huggingface_tensor *tensors, size_t count, size_t *size)
{
    json_t *root = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    uint64_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = bytes_of(&tensors[i]);
        json_object_set_new(root, tensors[i].name,
                            safetensors_entry(tensors[i].shape, tensors[i].axes, offset, bytes));
        offset += bytes;
    }
    char *json = json_dumps(root, JSON_COMPACT);
    char *header = safetensors_frame(json, size);
    free(json);
    json_decref(root);
    return header;
}

/* Allocate memory for a tensor; the caller frees *out. */
static int take(const struct huggingface_tensor *tensor, uint64_t bytes, float **out,
                struct error *err)
{
    *out = malloc(bytes);
    return *out ? 0
                : error_set(err, -ENOBUFS, "no %" PRIu64 " bytes of memory for '%s'", bytes,
                            tensor->name);
}

static int gather(struct checkpoint *checkpoint, const struct graph *graph,
                  const struct huggingface_tensor *tensor, float *theirs, struct error *err)
{
    int rc = 0;
    for (int i = 0; i < tensor->part_count && rc == 0; i++) {
        const struct huggingface_part *part = &tensor->parts[i];
        float *ours = NULL;
        rc = take(tensor, (uint64_t)box_count(&part->whole) * sizeof *ours, &ours, err);
        if (rc == 0)
            rc = checkpoint_load(checkpoint, graph->tensors[part->tensor].name, CHECKPOINT_WEIGHT,
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

static int write_tensor(struct checkpoint *checkpoint, const struct graph *graph,
                        const struct huggingface_tensor *tensor, FILE *file, const char *path,
                        struct error *err)
{
    uint64_t bytes = bytes_of(tensor);
    float *theirs = NULL;
    if (is_told_to_end())
        return error_set(err, -ECANCELED, "the export was told to end");
    int rc = take(tensor, bytes, &theirs, err);
    if (rc == 0)
        rc = gather(checkpoint, graph, tensor, theirs, err);
    if (rc == 0)
        rc = write_bytes(file, path, theirs, bytes, err);
    free(theirs);
    return rc;
}

int weights_write(struct checkpoint *checkpoint, const struct graph *graph,
                  const struct huggingface_tensor *tensors, size_t count, const char *path,
                  uint64_t *bytes, struct error *err)
{
    size_t size;
    FILE *file = fopen(path, "wxe");
    if (!file)
        return error_set(err, -errno, "write '%s': %s", path, strerror(errno));
    char *header = print_header(tensors, count, &size);
    int rc = write_bytes(file, path, header, size, err);
    *bytes = size;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = write_tensor(checkpoint, graph, &tensors[i], file, path, err);
        *bytes += bytes_of(&tensors[i]);
    }
    if (rc == 0 && (fflush(file) != 0 || fsync(fileno(file)) < 0))
        rc = error_set(err, -errno, "write '%s': %s", path, strerror(errno));
    if (fclose(file) != 0 && rc == 0)
        rc = error_set(err, -errno, "write '%s': %s", path, strerror(errno));
    free(header);
    return rc;
}
