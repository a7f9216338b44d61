/* checkpoints.h - checkpoints of a small model without a training: every element's value is a
 * function of its tensor, its part and its place in the whole. */
#ifndef TESTS_WORKER_CHECKPOINT_CHECKPOINTS_H
#define TESTS_WORKER_CHECKPOINT_CHECKPOINTS_H

#include "common/models/model.h"
#include "tests/support/engine.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/state.h"
#include "worker/huggingface/pretrained.h"

#define CHECKPOINTS_STEP 40

extern const struct job_model checkpoints_model;
extern const struct manifest_origin checkpoints_origin;

/* A new empty folder below /tmp; yours, for checkpoints_delete_folder. */
char *checkpoints_make_folder(void);
void checkpoints_delete_folder(char *folder);

/* Write, as all ranks of the plan, their shards and the manifest to folder, which is made. */
int checkpoints_write(const struct graph *graph, const struct plan *plan, const char *folder,
                      struct error *err);
/* Load, as all ranks of the plan, and compare every element: -EILSEQ names the first that is not
 * what was written, bit by bit. */
int checkpoints_read(const struct graph *graph, const struct plan *plan, const char *folder,
                     struct error *err);
/* As all ranks of the plan, have the masters filled, and compare them in the same way. */
int checkpoints_begin(const struct graph *graph, const struct plan *plan,
                      const struct pretrained *pretrained, struct error *err);
/* Change the byte at `offset` of a file in the folder; negative: from its end. */
void checkpoints_flip(const char *folder, const char *file, long offset);

#endif
