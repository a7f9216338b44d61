/* weights.h - writes model.safetensors: the weights of a checkpoint, named and laid out as in
 * transformers. */
#ifndef WORKER_EXPORT_WEIGHTS_H
#define WORKER_EXPORT_WEIGHTS_H

#include "common/models/huggingface.h"
#include "worker/checkpoint/read.h"

/* Write all tensors to a new file, durably; *bytes is its size. Needs memory for two copies of one
 * tensor at a time. -ECANCELED as in export_run; -ENOBUFS; otherwise errors of the checkpoint and
 * the disk. */
int weights_write(struct checkpoint *checkpoint, const struct graph *graph,
                  const struct huggingface_tensor *tensors, size_t count, const char *path,
                  uint64_t *bytes, struct error *err);

#endif
