/* call.h - what the kernels of every device ask of their call. */
#ifndef WORKER_KERNELS_CALL_H
#define WORKER_KERNELS_CALL_H

#include "worker/kernels/kernels.h"

/* y (rows, columns) = x (rows, inner) w, where w lies (inner, columns) or, transposed,
 * (columns, inner). */
struct matmul {
    int64_t rows, inner, columns;
    bool transposed;
};

/* Dims that x and w share are contracted, w's others are columns, x's others rows. */
struct matmul call_matmul(const struct kernel_call *call);
/* All dims but the last one. */
int64_t call_rows(const struct box *box);
/* The last one: of this piece, and of the whole operand. */
int64_t call_width(const struct box *box);
int64_t call_whole_width(const struct kernel_call *call, int operand);

/* The gradient of operand i is that of the output: where the program gave it memory of its
 * own, copy it there (or add it). */
void call_pass(const struct kernel_call *call, int i);

/* What the gradient is scaled by; false: the step is not finite, and nothing is to be done. */
bool call_update_scale(const struct update_call *call, float *scale);

static inline bool call_accumulates(const struct kernel_call *call, int i)
{
    return call->accumulate >> i & 1;
}

/* Element `at` of a view. */
static inline double get(const struct view *view, int64_t at)
{
    return (double)(view->element == ELEMENT_F32 ? ((const float *)view->data)[at]
                                                 : bf16_widen(((const uint16_t *)view->data)[at]));
}

/* Results are overwritten or added to. */
static inline void put(const struct view *view, int64_t at, bool add, double value)
{
    float result = (float)(add ? get(view, at) + value : value);
    if (view->element == ELEMENT_F32)
        ((float *)view->data)[at] = result;
    else
        ((uint16_t *)view->data)[at] = bf16_narrow(result);
}

#endif
