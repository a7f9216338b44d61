/* tensor_files.h - the tensors of a folder in the safetensors format, mapped: of model.safetensors,
 * or of the files named by model.safetensors.index.json. */
#ifndef WORKER_HUGGINGFACE_TENSOR_FILES_H
#define WORKER_HUGGINGFACE_TENSOR_FILES_H

#include "common/base/error.h"
#include "common/graph/box.h"
#include "worker/data/files.h"

#include <jansson.h>

#define TENSOR_FILES_MAX 512

/* FOREIGN: any other dtype, which is of no use here. */
enum tensor_dtype { DTYPE_F32, DTYPE_BF16, DTYPE_F16, DTYPE_FOREIGN };

struct foreign_tensor {
    char *name;
    char dtype_name[8];
    enum tensor_dtype dtype;
    int axes; /* DIMS_MAX + 1: more than our tensors have */
    int64_t shape[DIMS_MAX];
    const unsigned char *data; /* in the mapping; may be unaligned */
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

/* Map the files and parse their headers. The caller finishes *out even after an error. -errno with
 * the path; -EINVAL: a header does not describe its file, err says why. */
int tensor_files_open(const char *folder, struct tensor_files *out, struct error *err);
void tensor_files_finish(struct tensor_files *files);
/* Find a tensor by name; NULL: there is none. */
const struct foreign_tensor *tensor_files_find(const struct tensor_files *files, const char *name);

/* Whether the folder has a file of this name. */
bool tensor_files_has(const char *folder, const char *name);
/* Parse a file of the folder as JSON; numbers that Python writes and JSON lacks, as in "x": NaN,
 * become {"__float__": "NaN"}, as transformers 5 writes them; *out is the caller's. -errno with its
 * path. */
int tensor_files_json(const char *folder, const char *name, json_t **out, struct error *err);

/* Whether two tensors of the same shape have the same dtype and the same bytes. */
bool foreign_equal(const struct foreign_tensor *a, const struct foreign_tensor *b);
/* Element `index` of a tensor that is F32, BF16 or F16. */
float foreign_element(const struct foreign_tensor *tensor, int64_t index);

#endif
