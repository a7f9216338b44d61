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

/* Is all of the sum, and nothing else, what the norm is of? Its rows are whole. */
inline bool residual_is(const struct kernel_call *sum, const struct kernel_call *norm)
{
    const struct view *made = &sum->operand[2], *taken = &norm->operand[0];
    return made->data == taken->data && box_count(&made->box) == box_count(&taken->box);
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
