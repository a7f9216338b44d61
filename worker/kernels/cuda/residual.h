/* residual.h - a residual addition and the norm of its result, in one launch. */
#ifndef WORKER_KERNELS_CUDA_RESIDUAL_H
#define WORKER_KERNELS_CUDA_RESIDUAL_H

#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

/* Compute a row of x = a + z, then call norm(row). Each lane reads only elements of x that it wrote
 * itself, so no synchronisation is needed. */
template <typename E, typename Norm> struct added {
    Norm norm;
    const E *a, *z;
    E *x;
    int64_t hidden;
    __device__ void operator()(int64_t row) const
    {
        const E *a_here = a, *z_here = z;
        E *x_here = x;
        each_ahead(
            row * hidden + lane_of(), (row + 1) * hidden, WARP,
            [=](int64_t i) { return wide(a_here[i]) + wide(z_here[i]); },
            [=](int64_t i, float sum) { set_at(&x_here[i], sum); });
        norm(row);
    }
};

/* Whether the memory of two views overlaps, other than by being the same. */
inline bool residual_overlaps(const struct view *a, const struct view *b)
{
    const char *a_begin = (const char *)a->data, *b_begin = (const char *)b->data;
    size_t a_bytes = view_elements(a) * element_size(a->element);
    size_t b_bytes = view_elements(b) * element_size(b->element);
    bool same = a_begin == b_begin && a_bytes == b_bytes; /* a row is read before it is written */
    return a_begin && b_begin && !same && a_begin < b_begin + b_bytes &&
           b_begin < a_begin + a_bytes;
}

/* Whether the input of the norm is exactly the result of the sum, and one launch may do both. After
 * the sum its operands may be dead, and the results of the norm may have been placed in their
 * memory. That rules out one launch, in which some rows are still to be added when others are
 * normalised, unless they share the memory exactly, row by row. */
inline bool residual_is(const struct kernel_call *sum, const struct kernel_call *norm)
{
    const struct view *made = &sum->operand[2], *taken = &norm->operand[0];
    bool is = made->data == taken->data && box_count(&made->box) == box_count(&taken->box);
    for (int i = operation_output(norm->node->operation); i < VIEWS_MAX; i++)
        is = is && !residual_overlaps(&sum->operand[0], &norm->operand[i]) &&
             !residual_overlaps(&sum->operand[1], &norm->operand[i]);
    return is;
}

/* Launch the sum and norm(row) for each row. */
template <typename E, typename Norm>
void residual_launch(const char *what, const struct kernel_call *sum, const Norm &norm)
{
    const struct added<E, Norm> each = {
        norm, (const E *)sum->operand[0].data, (const E *)sum->operand[1].data,
            (E *)sum->operand[2].data, norm.rows.hidden
    };
    launch_each_row(what, norm.rows.count, each);
}

#endif
