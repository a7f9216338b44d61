/* pretrained.h - weights that a training begins from: a folder as save_pretrained() of transformers
 * writes it, and `gimbal checkpoint export`: config.json, and safetensors in f32, bf16 or f16, in
 * one file or with an index.
 *
 * Every rank reads what it needs of each tensor, under any plan. The files stay mapped: they must
 * not be shortened meanwhile. */
#ifndef WORKER_PRETRAINED_PRETRAINED_H
#define WORKER_PRETRAINED_PRETRAINED_H

#include "common/models/model.h"
#include "worker/checkpoint/state.h"
#include "worker/data/data.h"

struct pretrained;

/* *out is yours; the graph is lent until it is closed. -EINVAL: the folder is of another model, and
 * how that shows; -ENOSYS: transformers has no such family; -errno with the path. */
int pretrained_open(const char *folder, const struct model_config *config,
                    const struct graph *graph, struct pretrained **out, struct error *err);
/* Accepts NULL. */
void pretrained_close(struct pretrained *pretrained);

/* As data_files(): so that ranks of several nodes can be compared. */
size_t pretrained_files(const struct pretrained *pretrained, struct data_file **out);

/* Fill the masters of all parameters of a rank, each with its box. */
void pretrained_fill(const struct pretrained *pretrained, const struct program *program,
                     state_buffer_cb *buffer, void *context);

#endif
