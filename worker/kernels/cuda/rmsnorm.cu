/* rmsnorm.cu - a warp per row: y = x r w, r = 1 / sqrt(mean of x^2 + epsilon): Zhang and Sennrich,
 * arXiv 1910.07467.
 *
 * Statistics are sums over the piece of h that is here; between two phases they become the sums
 * over all of h. */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/cuda.h"

namespace
{

enum { X, W, Y, SQUARES, DOT = 3 };

template <typename E> struct rows {
    int64_t count, hidden;
    float width, epsilon; /* width: all of h */
    const E *x, *w, *dy;
    float *squares, *dots;

    __device__ float scale(int64_t row) const
    {
        return 1 / sqrtf(squares[row] / width + epsilon);
    }
};

template <typename E> struct rows<E> rows_of(const struct kernel_call *call) {
    const struct box *box = &call->operand[X].box;
    return {call_rows(box),
            box_length(box, 2),
            (float)sizes_get(&call->sizes, 'h'),
            call->node->epsilon,
            (const E *)call->operand[X].data,
            (const E *)call->operand[W].data,
            (const E *)call->gradient[Y].data,
            (float *)call->operand[SQUARES].data,
            (float *)call->gradient[DOT].data};
}

template <typename E>
__global__ void square(struct rows<E> rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float sum = 0;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP)
            sum += wide(rows.x[row * rows.hidden + i]) * wide(rows.x[row * rows.hidden + i]);
        sum = warp_sum(sum);
        if (lane_of() == 0)
            rows.squares[row] = sum;
    }
}

template <typename E> __global__ void normalise(struct rows<E> rows, E *y)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float r = rows.scale(row);
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP)
            set_at(&y[row * rows.hidden + i],
                   wide(rows.x[row * rows.hidden + i]) * r * wide(rows.w[i]));
    }
}

template <typename E> __global__ void dot(struct rows<E> rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float sum = 0;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            int64_t at = row * rows.hidden + i;
            sum += wide(rows.dy[at]) * wide(rows.w[i]) * wide(rows.x[at]);
        }
        sum = warp_sum(sum);
        if (lane_of() == 0)
            rows.dots[row] = sum;
    }
}

/* dx = r (dy w - x r^2 dot / width) */
template <typename E> __global__ void slope(struct rows<E> rows, E *dx, bool add)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float r = rows.scale(row), share = r * r * rows.dots[row] / rows.width;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            int64_t at = row * rows.hidden + i;
            put_at(&dx[at], add,
                   r * (wide(rows.dy[at]) * wide(rows.w[i]) - wide(rows.x[at]) * share));
        }
    }
}

/* dw = sum of dy x r */
template <typename E> struct given {
    struct rows<E> rows;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        int64_t at = row * rows.hidden + column;
        return wide(rows.dy[at]) * wide(rows.x[at]) * rows.scale(row);
    }
};

template <typename E> void forward_squares(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    launch_rows("rmsnorm", square<E>, rows.count, rows);
}

template <typename E> void forward_output(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    launch_rows("rmsnorm", normalise<E>, rows.count, rows, (E *)call->operand[Y].data);
}

template <typename E> void backward_dot(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    launch_rows("rmsnorm backward", dot<E>, rows.count, rows);
}

template <typename E> void backward_gradients(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    E *dx = (E *)call->gradient[X].data;
    const struct view *dw = &call->gradient[W];
    /* The weight's first: the gradient of x may lie where that of y does. */
    if (dw->data)
        columns_sum("rmsnorm backward", given<E>{rows}, rows.count, rows.hidden, dw);
    if (dx)
        launch_rows("rmsnorm backward", slope<E>, rows.count, rows, dx, call_accumulates(call, X));
}

} // namespace

const struct kernel cuda_rmsnorm = {"rmsnorm",
                                    {{EITHER(forward_squares), EITHER(forward_output)},
                                     {EITHER(backward_dot), EITHER(backward_gradients)}}};
