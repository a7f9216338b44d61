/* sdpa.h - causal attention as graphs of cuDNN's operations, in the order and the types that the
 * library knows as attention, and runs by one kernel.
 *
 * What it does not know it may take nevertheless, and compute something else: an operation that is
 * left out, or another order, is a fault that only a comparison shows. */
#ifndef WORKER_KERNELS_CUDA_SDPA_H
#define WORKER_KERNELS_CUDA_SDPA_H

#include "worker/kernels/cuda/backend.h"

/* q and y are (batch, seq, heads, width), k and v have key_heads; all bf16. The sums are (batch,
 * heads, seq), f32. Heads are group * key_heads; in memory there may be more of them. */
struct sdpa_shape {
    int64_t batch, seq, key_heads, group, width;
    int64_t key_heads_apart; /* of those in memory these are some */

    int64_t heads(void) const
    {
        return group * key_heads;
    }
    int64_t heads_apart(void) const
    {
        return group * key_heads_apart;
    }
};

enum sdpa_tensor {
    SDPA_Q = 1,
    SDPA_K,
    SDPA_V,
    SDPA_Y,
    SDPA_SUMS,
    SDPA_DY,
    SDPA_DQ,
    SDPA_DK,
    SDPA_DV,
    SDPA_SCALE,   /* numbers: 1 / sqrt(width) */
    SDPA_NOTHING, /* -infinity */
    SDPA_ONE,
    SDPA_TENSORS,
};

/* Of q, k, v, scale and nothing: y and sums. */
struct backend_graph sdpa_forward(const struct sdpa_shape *shape);
/* What backward keeps of so much at once: a matrix of scores of every head, so that its sums have
 * an order, and gradients of heads that share keys before they are summed. An estimate: what is
 * true a plan says. */
int64_t sdpa_backward_bytes(const struct sdpa_shape *shape);
/* The next smaller part of the whole that it is a multiple of: of fewer samples, then of fewer
 * heads. False: there is none. Results have the same bits in any parts. */
bool sdpa_smaller(const struct sdpa_shape *whole, struct sdpa_shape *part);
/* Of q, k, v, y, dy, sums and all numbers: dq, dk, dv, with the same bits every time. */
struct backend_graph sdpa_backward(const struct sdpa_shape *shape);

#endif
