/* weights.h - model.safetensors: the weights of a checkpoint as others name and lay them. */
#ifndef WORKER_EXPORT_WEIGHTS_H
#define WORKER_EXPORT_WEIGHTS_H

#include "common/models/huggingface.h"
#include "worker/checkpoint/read.h"

/* Write all tensors to path, a new file, durably; *bytes: its size. It holds one of them in memory
 * at a time, twice. -ECANCELED as of export_run; what the checkpoint and the disk say. */
int weights_write(struct checkpoint *checkpoint, const struct graph *graph,
                  const struct huggingface_tensor *tensors, size_t count, const char *path,
                  uint64_t *bytes, struct error *err);

#endif
