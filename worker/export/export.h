/* export.h - the model of a checkpoint as a folder that transformers' from_pretrained() reads:
 * config.json, model.safetensors in f32, and for a model of bytes its tokenizer. What an optimizer
 * keeps stays behind. */
#ifndef WORKER_EXPORT_EXPORT_H
#define WORKER_EXPORT_EXPORT_H

#include "common/base/error.h"

#include <stdio.h>

struct export_request {
    const char *checkpoint; /* folder of one step */
    const char *job;        /* file: what was trained */
    const char *out;        /* folder; made, and there only when it is whole */
};

/* Says in `say` what was written. -EEXIST: there is such a folder, or one of an export that was
 * broken off; -EINVAL: the checkpoint is of another model; -ENOSYS: transformers has no such
 * family; -ECANCELED: a SIGINT or SIGTERM, which the caller has blocked, is pending; errors of the
 * checkpoint and the disk. Nothing is left of it then. */
int export_run(const struct export_request *request, FILE *say, struct error *err);

#endif
