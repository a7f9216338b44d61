/* residual.h - a norm of what a residual has just added up, in the launch that adds it up. */
#ifndef WORKER_KERNELS_CUDA_RESIDUAL_H
#define WORKER_KERNELS_CUDA_RESIDUAL_H

#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

/* A row of x = a + z, and what `norm` does with it: its lanes read what they wrote themselves. */
template <typename E, typename Norm> struct added {
    Norm norm;
    const E *a, *z;
    E *x;
    int64_t hidden;
    __device__ void operator()(int64_t row) const
    {
        for (int64_t i = row * hidden + lane_of(); i < (row + 1) * hidden; i += WARP)
            set_at(&x[i], wide(a[i]) + wide(z[i]));
        norm(row);
    }
};

inline bool residual_overlaps(const struct view *a, const struct view *b)
{
    const char *a_begin = (const char *)a->data, *b_begin = (const char *)b->data;
    size_t a_bytes = view_elements(a) * element_size(a->element);
    size_t b_bytes = view_elements(b) * element_size(b->element);
    bool same = a_begin == b_begin && a_bytes == b_bytes; /* a row is read before it is written */
    return a_begin && b_begin && !same && a_begin < b_begin + b_bytes &&
           b_begin < a_begin + a_bytes;
}

/* Is all of the sum, and nothing else, what the norm is of? Behind the sum its operands are of no
 * use to anybody, and what the norm makes may lie there: not here, where rows are still to be added
 * up when others are normalised. */
inline bool residual_is(const struct kernel_call *sum, const struct kernel_call *norm)
{
    const struct view *made = &sum->operand[2], *taken = &norm->operand[0];
    bool is = made->data == taken->data && box_count(&made->box) == box_count(&taken->box);
    for (int i = operation_output(norm->node->operation); i < VIEWS_MAX; i++)
        is = is && !residual_overlaps(&sum->operand[0], &norm->operand[i]) &&
             !residual_overlaps(&sum->operand[1], &norm->operand[i]);
    return is;
}

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
