/* peer.h - the yardstick: PyTorch, which users would pick instead, training the same model on
 * request in a process of its own. */
#ifndef BENCH_TRAINING_PEER_H
#define BENCH_TRAINING_PEER_H

#include "common/base/error.h"
#include "common/models/model.h"

struct peer;

struct peer_config {
    const struct job_model *model; /* gpt or llama, with its ffn */
    enum element element;
    int batch;         /* samples per step */
    const char *where; /* the core to bind it to, "3", or "cuda" */
    const char *mode;  /* "eager" or "compile" */
};

/* Start PyTorch: $GIMBAL_BENCH_PYTHON (by default python3) runs the script $GIMBAL_BENCH_TORCH (by
 * default that of this source tree), with $GIMBAL_BENCH_LIBRARIES as its LD_LIBRARY_PATH (by
 * default none). -ENOENT when it cannot train here; why is on stderr. */
int peer_open(const struct peer_config *config, struct peer **out, struct error *err);
/* The release of PyTorch, "2.9.1"; borrowed from the peer. */
const char *peer_release(const struct peer *peer);
/* Have it train this many steps; returns the seconds that they took. If the peer has ended, this
 * process ends with a message. */
double peer_seconds(struct peer *peer, int steps);
void peer_close(struct peer *peer);

#endif
