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

struct rows {
    int64_t count, hidden;
    float width, epsilon; /* width: all of h */
    const float *x, *w, *b, *dy;
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

struct rows rows_of(const struct kernel_call *call)
{
    const struct box *box = &call->operand[X].box;
    return {call_rows(box),
            box_length(box, 2),
            (float)sizes_get(&call->sizes, 'h'),
            call->node->epsilon,
            (const float *)call->operand[X].data,
            (const float *)call->operand[W].data,
            (const float *)call->operand[B].data,
            (const float *)call->gradient[Y].data,
            (float *)call->operand[SUM].data,
            (float *)call->operand[SQUARES].data,
            (float *)call->gradient[DOT_W].data,
            (float *)call->gradient[DOT_U].data};
}

__global__ void sum(struct rows rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float sum = 0;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP)
            sum += rows.x[row * rows.hidden + i];
        sum = warp_sum(sum);
        if (lane_of() == 0)
            rows.sums[row] = sum;
    }
}

__global__ void square(struct rows rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float mean = rows.mean(row), sum = 0;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            float deviation = rows.x[row * rows.hidden + i] - mean;
            sum += deviation * deviation;
        }
        sum = warp_sum(sum);
        if (lane_of() == 0)
            rows.squares[row] = sum;
    }
}

__global__ void normalise(struct rows rows, float *y)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float mean = rows.mean(row), scale = rows.scale(row);
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            int64_t at = row * rows.hidden + i;
            y[at] = (rows.x[at] - mean) * scale * rows.w[i] + rows.b[i];
        }
    }
}

__global__ void dots(struct rows rows)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float mean = rows.mean(row), scale = rows.scale(row), sum = 0, sum_u = 0;
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            int64_t at = row * rows.hidden + i;
            float du = rows.dy[at] * rows.w[i];
            sum += du;
            sum_u += du * (rows.x[at] - mean) * scale;
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
__global__ void slope(struct rows rows, float *dx, bool add)
{
    for (int64_t row = row_first(); row < rows.count; row += row_step()) {
        float mean = rows.mean(row), scale = rows.scale(row);
        float dot_w = rows.dots_w[row], dot_u = rows.dots_u[row];
        for (int64_t i = lane_of(); i < rows.hidden; i += WARP) {
            int64_t at = row * rows.hidden + i;
            float u = (rows.x[at] - mean) * scale;
            float rest = (dot_w + u * dot_u) / rows.width;
            put_at(&dx[at], add, (rows.dy[at] * rows.w[i] - rest) * scale);
        }
    }
}

/* dw = sum of dy u, db = sum of dy */
struct weight_given {
    struct rows rows;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        int64_t at = row * rows.hidden + column;
        return rows.dy[at] * (rows.x[at] - rows.mean(row)) * rows.scale(row);
    }
};

struct bias_given {
    struct rows rows;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        return rows.dy[row * rows.hidden + column];
    }
};

void forward_sum(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    launch_rows("norm", sum, rows.count, rows);
}

void forward_squares(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    launch_rows("norm", square, rows.count, rows);
}

void forward_output(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    launch_rows("norm", normalise, rows.count, rows, (float *)call->operand[Y].data);
}

void backward_dots(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    launch_rows("norm backward", dots, rows.count, rows);
}

void backward_gradients(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    float *dx = (float *)call->gradient[X].data;
    float *dw = (float *)call->gradient[W].data, *db = (float *)call->gradient[B].data;
    /* The weights' first: the gradient of x may lie where that of y does. */
    if (dw)
        columns_sum("norm backward", weight_given{rows}, rows.count, rows.hidden, dw);
    if (db)
        columns_sum("norm backward", bias_given{rows}, rows.count, rows.hidden, db);
    if (dx)
        launch_rows("norm backward", slope, rows.count, rows, dx, call_accumulates(call, X));
}

} // namespace

const struct kernel cuda_norm = {
    "norm",
    {{forward_sum, forward_squares, forward_output}, {backward_dots, backward_gradients}},
};
