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

struct rows {
    int64_t count, hidden;
    float width, epsilon; /* width: all of h */
    const float *x, *w, *dy;
    float *squares, *dots;

    __device__ float scale(int64_t row) const
    {
        return 1 / sqrtf(squares[row] / width + epsilon);
    }
};

struct rows rows_of(const struct kernel_call *call)
{
    const struct box *box = &call->operand[X].box;
    return {call_rows(box),
            box_length(box, 2),
            (float)sizes_get(&call->sizes, 'h'),
            call->node->epsilon,
            (const float *)call->operand[X].data,
            (const float *)call->operand[W].data,
            (const float *)call->gradient[Y].data,
            (float *)call->operand[SQUARES].data,
            (float *)call->gradient[DOT].data};
}

__global__ void square(struct rows rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float sum = 0;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP)
            sum += rows.x[row * rows.hidden + i] * rows.x[row * rows.hidden + i];
        sum = warp_sum(sum);
        if (lane_of() == 0)
            rows.squares[row] = sum;
    }
}

__global__ void normalise(struct rows rows, float *y)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float r = rows.scale(row);
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP)
            y[row * rows.hidden + i] = rows.x[row * rows.hidden + i] * r * rows.w[i];
    }
}

__global__ void dot(struct rows rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float sum = 0;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            int64_t at = row * rows.hidden + i;
            sum += rows.dy[at] * rows.w[i] * rows.x[at];
        }
        sum = warp_sum(sum);
        if (lane_of() == 0)
            rows.dots[row] = sum;
    }
}

/* dx = r (dy w - x r^2 dot / width) */
__global__ void slope(struct rows rows, float *dx, bool add)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float r = rows.scale(row), share = r * r * rows.dots[row] / rows.width;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            int64_t at = row * rows.hidden + i;
            put_at(&dx[at], add, r * (rows.dy[at] * rows.w[i] - rows.x[at] * share));
        }
    }
}

/* dw = sum of dy x r */
struct given {
    struct rows rows;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        int64_t at = row * rows.hidden + column;
        return rows.dy[at] * rows.x[at] * rows.scale(row);
    }
};

void forward_squares(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    launch_rows("rmsnorm", square, rows.count, rows);
}

void forward_output(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    launch_rows("rmsnorm", normalise, rows.count, rows, (float *)call->operand[Y].data);
}

void backward_dot(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    launch_rows("rmsnorm backward", dot, rows.count, rows);
}

void backward_gradients(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    float *dx = (float *)call->gradient[X].data, *dw = (float *)call->gradient[W].data;
    /* The weight's first: the gradient of x may lie where that of y does. */
    if (dw)
        columns_sum("rmsnorm backward", given{rows}, rows.count, rows.hidden, dw);
    if (dx)
        launch_rows("rmsnorm backward", slope, rows.count, rows, dx, call_accumulates(call, X));
}

} // namespace

const struct kernel cuda_rmsnorm = {
    "rmsnorm", {{forward_squares, forward_output}, {backward_dot, backward_gradients}}};
