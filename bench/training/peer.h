/* peer.h - what a user would pick instead, PyTorch, in a process of its own that trains when asked.
 */
#ifndef BENCH_TRAINING_PEER_H
#define BENCH_TRAINING_PEER_H

#include "common/base/error.h"
#include "common/models/model.h"

struct peer;

struct peer_config {
    const struct model_config *model; /* gpt or llama, with its ffn */
    int batch;                        /* samples of a step */
    const char *where;                /* the core that it is bound to, "3", or "cuda" */
    const char *mode;                 /* "eager" or "compile" */
};

/* $GIMBAL_BENCH_PYTHON, else python3, runs it, from $GIMBAL_BENCH_TORCH, else from this source
 * tree. -ENOENT: it does not train here, and what it said of it. */
int peer_open(const struct peer_config *config, struct peer **out, struct error *err);
/* Its release, "2.9.1"; lent. */
const char *peer_release(const struct peer *peer);
/* Seconds that it takes for so many steps; it ends the process with a sentence where it ended. */
double peer_seconds(struct peer *peer, int steps);
void peer_close(struct peer *peer);

#endif
