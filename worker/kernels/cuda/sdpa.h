/* sdpa.h - causal scaled dot-product attention as graphs of cuDNN's operations, in the order and
 * with the types that cuDNN recognises as attention and runs as one kernel.
 *
 * cuDNN may accept a graph that it does not recognise, and compute something else: a missing
 * operation or a different order is an error that only comparing results shows. */
#ifndef WORKER_KERNELS_CUDA_SDPA_H
#define WORKER_KERNELS_CUDA_SDPA_H

#include "worker/kernels/cuda/cudnn_graph.h"

/* q and y are (batch, seq, heads, width), k and v are (batch, seq, key_heads, width); all bf16. The
 * sums, the logarithms of the sums of exp(score), are (batch, heads, seq), f32. A shape may cover
 * only some of the heads that lie in memory. Compared with memcmp(). */
struct sdpa_shape {
    int64_t batch, seq, key_heads, group, width;
    int64_t key_heads_apart; /* the heads of keys in memory, which strides follow from */

    int64_t heads(void) const
    {
        return group * key_heads;
    }
    int64_t heads_apart(void) const
    {
        return group * key_heads_apart;
    }
};

/* Ids of the graphs' tensors. */
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
    SDPA_SCALE,   /* the numbers, f32 in host memory: 1 / sqrt(width) */
    SDPA_NOTHING, /* -infinity */
    SDPA_ONE,     /* 1 */
    SDPA_TENSORS,
};

/* y and sums from q, k, v, SDPA_SCALE and SDPA_NOTHING. */
struct cudnn_graph sdpa_forward(const struct sdpa_shape *shape);
/* An estimate of the workspace of backward, in bytes: a matrix of scores for every head, which
 * makes the order of its sums fixed, and where heads share keys their gradients before these are
 * summed. The plan states the exact size. */
int64_t sdpa_backward_bytes(const struct sdpa_shape *shape);
/* Reduce `part` to the next smaller one that divides the whole evenly: first to fewer samples, then
 * to fewer heads. False: there is none. Results have the same bits whatever the parts. */
bool sdpa_smaller(const struct sdpa_shape *whole, struct sdpa_shape *part);
/* dq, dk and dv from q, k, v, y, dy, sums and all numbers, with the same bits in every run. */
struct cudnn_graph sdpa_backward(const struct sdpa_shape *shape);

#endif
