/* tensor_files.h - the tensors of a folder in the safetensors format, mapped: of model.safetensors,
 * or of the files that model.safetensors.index.json names. */
#ifndef WORKER_PRETRAINED_TENSOR_FILES_H
#define WORKER_PRETRAINED_TENSOR_FILES_H

#include "common/base/error.h"
#include "common/graph/shape.h"
#include "worker/data/files.h"

#include <jansson.h>

#define TENSOR_FILES_MAX 512

/* FOREIGN: they have it, and we have no use for it. */
enum tensor_dtype { DTYPE_F32, DTYPE_BF16, DTYPE_F16, DTYPE_FOREIGN };

struct foreign_tensor {
    char *name;
    char dtype_name[8];
    enum tensor_dtype dtype;
    int axes; /* DIMS_MAX + 1: more than ours have */
    int64_t shape[DIMS_MAX];
    const unsigned char *data; /* at any address */
};

struct tensor_file {
    char *path;
    struct file file;
};

struct tensor_files {
    struct tensor_file *files;
    struct foreign_tensor *tensors;
    size_t file_count, tensor_count, tensor_capacity;
};

/* To be finished, whatever comes of it. -errno with the path; -EINVAL: a header that does not
 * describe its file, and why. */
int tensor_files_open(const char *folder, struct tensor_files *out, struct error *err);
void tensor_files_finish(struct tensor_files *files);
/* NULL: there is none of that name. */
const struct foreign_tensor *tensor_files_find(const struct tensor_files *files, const char *name);

/* A file of the folder as JSON, *out is yours. -errno with its path. */
int tensor_files_json(const char *folder, const char *name, json_t **out, struct error *err);

/* The same numbers of the same type, of two that have the same shape? */
bool foreign_equal(const struct foreign_tensor *a, const struct foreign_tensor *b);
/* Element `index` of what is F32, BF16 or F16. */
float foreign_element(const struct foreign_tensor *tensor, int64_t index);

#endif
