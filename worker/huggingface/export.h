/* export.h - writes the model of a checkpoint as a folder that from_pretrained() of transformers
 * reads: config.json, model.safetensors, the tokenizer if it is known, and what the folder of
 * model.weights says of texts and chats. Optimizer moments are not exported. */
#ifndef WORKER_HUGGINGFACE_EXPORT_H
#define WORKER_HUGGINGFACE_EXPORT_H

#include "common/base/error.h"
#include "common/models/huggingface.h"
#include "worker/checkpoint/checkpoint.h"

#include <stdio.h>

struct export_request {
    const char *checkpoint; /* folder of one step */
    const char *job;        /* file of the job that was trained */
    const char *out;        /* folder to create; it exists only once it is complete */
    enum element element;   /* of the weights */
};

/* Export, and describe the result in a line on `say`. -EEXIST: the folder exists, or that of an
 * export which was interrupted; -EINVAL: the checkpoint is of another model; -ENOSYS: transformers
 * has no such family; -ECANCELED: SIGINT or SIGTERM, which the caller has blocked, is pending;
 * otherwise errors of the checkpoint and the disk. After an error nothing is left of it. */
int export_run(const struct export_request *request, FILE *say, struct error *err);

/* Write all tensors, named and laid out as in transformers, to a new file model.safetensors,
 * durably; *bytes is its size. Needs memory for two copies of one tensor at a time. -ECANCELED as
 * in export_run; -ENOBUFS; otherwise errors of the checkpoint and the disk. */
int weights_write(struct checkpoint *checkpoint, const struct graph *graph,
                  const struct huggingface_tensor *tensors, size_t count, enum element element,
                  const char *path, uint64_t *bytes, struct error *err);

#endif
