/* norm.cu - layer normalisation, a warp per row: y = u w + b, u = (x - mean) / deviation.
 *
 * Ba, Kiros and Hinton, arXiv 1607.06450. Statistics are sums over the piece of h that is here;
 * between two phases they become the sums over all of h. */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/cuda.h"

namespace
{

enum { X, W, B, Y, SUM, SQUARES };
enum { DOT_W = 4, DOT_U };

template <typename E> struct rows {
    int64_t count, hidden;
    float width, epsilon; /* width: all of h */
    const E *x, *w, *b, *dy;
    float *sums, *squares, *dots_w, *dots_u;

    __device__ float mean(int64_t row) const
    {
        return sums[row] / width;
    }
    /* u = (x - mean) * scale */
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
            (const E *)call->operand[B].data,
            (const E *)call->gradient[Y].data,
            (float *)call->operand[SUM].data,
            (float *)call->operand[SQUARES].data,
            (float *)call->gradient[DOT_W].data,
            (float *)call->gradient[DOT_U].data};
}

template <typename E>
__global__ void sum(struct rows<E> rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float sum = 0;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP)
            sum += wide(rows.x[row * rows.hidden + i]);
        sum = warp_sum(sum);
        if (lane_of() == 0)
            rows.sums[row] = sum;
    }
}

template <typename E> __global__ void square(struct rows<E> rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float mean = rows.mean(row), sum = 0;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            float deviation = wide(rows.x[row * rows.hidden + i]) - mean;
            sum += deviation * deviation;
        }
        sum = warp_sum(sum);
        if (lane_of() == 0)
            rows.squares[row] = sum;
    }
}

template <typename E> __global__ void normalise(struct rows<E> rows, E *y)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float mean = rows.mean(row), scale = rows.scale(row);
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            int64_t at = row * rows.hidden + i;
            set_at(&y[at], (wide(rows.x[at]) - mean) * scale * wide(rows.w[i]) + wide(rows.b[i]));
        }
    }
}

template <typename E> __global__ void dots(struct rows<E> rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float mean = rows.mean(row), scale = rows.scale(row), sum = 0, sum_u = 0;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            int64_t at = row * rows.hidden + i;
            float du = wide(rows.dy[at]) * wide(rows.w[i]);
            sum += du;
            sum_u += du * (wide(rows.x[at]) - mean) * scale;
        }
        sum = warp_sum(sum);
        sum_u = warp_sum(sum_u);
        if (lane_of() == 0) {
            rows.dots_w[row] = sum;
            rows.dots_u[row] = sum_u;
        }
    }
}

/* dx = (dy w - (dot_w + u dot_u) / width) / deviation */
template <typename E> __global__ void slope(struct rows<E> rows, E *dx, bool add)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float mean = rows.mean(row), scale = rows.scale(row);
        float dot_w = rows.dots_w[row], dot_u = rows.dots_u[row];
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            int64_t at = row * rows.hidden + i;
            float u = (wide(rows.x[at]) - mean) * scale;
            float rest = (dot_w + u * dot_u) / rows.width;
            put_at(&dx[at], add, (wide(rows.dy[at]) * wide(rows.w[i]) - rest) * scale);
        }
    }
}

/* dw = sum of dy u, db = sum of dy */
template <typename E> struct weight_given {
    struct rows<E> rows;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        int64_t at = row * rows.hidden + column;
        return wide(rows.dy[at]) * (wide(rows.x[at]) - rows.mean(row)) * rows.scale(row);
    }
};

template <typename E> struct bias_given {
    struct rows<E> rows;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        return wide(rows.dy[row * rows.hidden + column]);
    }
};

template <typename E> void forward_sum(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    launch_rows("norm", sum<E>, rows.count, rows);
}

template <typename E> void forward_squares(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    launch_rows("norm", square<E>, rows.count, rows);
}

template <typename E> void forward_output(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    launch_rows("norm", normalise<E>, rows.count, rows, (E *)call->operand[Y].data);
}

template <typename E> void backward_dots(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    launch_rows("norm backward", dots<E>, rows.count, rows);
}

template <typename E> void backward_gradients(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    E *dx = (E *)call->gradient[X].data;
    const struct view *dw = &call->gradient[W], *db = &call->gradient[B];
    /* The weights' first: the gradient of x may lie where that of y does. */
    if (dw->data)
        columns_sum("norm backward", weight_given<E>{rows}, rows.count, rows.hidden, dw);
    if (db->data)
        columns_sum("norm backward", bias_given<E>{rows}, rows.count, rows.hidden, db);
    if (dx)
        launch_rows("norm backward", slope<E>, rows.count, rows, dx, call_accumulates(call, X));
}

} // namespace

const struct kernel cuda_norm = {
    "norm",
    {{EITHER(forward_sum), EITHER(forward_squares), EITHER(forward_output)},
     {EITHER(backward_dots), EITHER(backward_gradients)}},
};
