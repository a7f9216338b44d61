/* pretrained.h - weights with which training starts: a folder as written by save_pretrained() of
 * transformers or by `gimbal checkpoint export`, with config.json and safetensors in f32, bf16 or
 * f16, in one file or with an index.
 *
 * Every rank reads what it needs of each tensor, under any plan. The files stay mapped, and must
 * not be truncated meanwhile. */
#ifndef WORKER_HUGGINGFACE_PRETRAINED_H
#define WORKER_HUGGINGFACE_PRETRAINED_H

#include "common/models/model.h"
#include "worker/checkpoint/state.h"
#include "worker/data/data.h"
#include "worker/tokenizer/tokenizer.h"

struct pretrained;

/* Open and check a folder. The graph is lent until pretrained_close, which the caller must call on
 * *out. -EINVAL: the folder has another model, err has the difference; -ENOSYS: transformers has no
 * such family; otherwise -errno with the path. */
int pretrained_open(const char *folder, const struct job_model *config, const struct graph *graph,
                    struct pretrained **out, struct error *err);
/* Accepts NULL. */
void pretrained_close(struct pretrained *pretrained);

/* Compare what the folder has besides its weights with the job and the tokenizer of its data (NULL:
 * nobody knows it). Once. */
void pretrained_compare(struct pretrained *pretrained, const struct job_config *job,
                        const struct tokenizer *tokenizer);
/* What was found to differ: sentences about "it", the folder, lent. NULL: there are no more. */
const char *pretrained_remark(const struct pretrained *pretrained, size_t index);

/* As data_files(), so that ranks on different nodes can be compared. */
size_t pretrained_files(const struct pretrained *pretrained, struct data_file **out);

/* Fill the masters of all parameters of a rank, each with its box. */
void pretrained_fill(const struct pretrained *pretrained, const struct program *program,
                     state_buffer_cb *buffer, void *context);

#endif
