/* call.h - helpers for the kernels of every device: shapes of a call, and its elements. */
#ifndef WORKER_KERNELS_CALL_H
#define WORKER_KERNELS_CALL_H

#include "worker/kernels/kernels.h"

/* Shape of y (rows, columns) = x (rows, inner) w. In memory w is (inner, columns) or, if
 * transposed, (columns, inner). */
struct matmul {
    int64_t rows, inner, columns;
    bool transposed;
};

/* The matrix product of a call: dims that x (operand 0) and w (operand 1) share are contracted; the
 * others of w are columns, those of x rows. */
struct matmul call_matmul(const struct kernel_call *call);
/* Product of the lengths of all dims but the last. */
int64_t call_rows(const struct box *box);
/* Length of the last dim: of this piece, and of the whole operand. */
int64_t call_width(const struct box *box);
int64_t call_whole_width(const struct kernel_call *call, int operand);

/* The gradient of operand i equals the gradient of the output: copy it, or add it if i accumulates,
 * unless both share the same memory or operand i's gradient is not wanted. */
void call_pass(const struct kernel_call *call, int i);

/* Set *scale to the factor by which gradients are clipped (at most 1). Returns false if the step is
 * not finite, and nothing is to be updated. */
bool call_update_scale(const struct update_call *call, float *scale);

/* Whether the gradient of operand i is added to what is there. */
static inline bool call_accumulates(const struct kernel_call *call, int i)
{
    return call->accumulate >> i & 1;
}

/* Element `at` of a view, widened to double. */
static inline double get(const struct view *view, int64_t at)
{
    return (double)(view->element == ELEMENT_F32 ? ((const float *)view->data)[at]
                                                 : bf16_widen(((const uint16_t *)view->data)[at]));
}

/* Write element `at`, rounded to the view's element; or add to it. */
static inline void put(const struct view *view, int64_t at, bool add, double value)
{
    float result = (float)(add ? get(view, at) + value : value);
    if (view->element == ELEMENT_F32)
        ((float *)view->data)[at] = result;
    else
        ((uint16_t *)view->data)[at] = bf16_narrow(result);
}

#endif
