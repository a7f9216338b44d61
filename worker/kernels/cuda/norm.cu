/* norm.cu - layer normalisation, a warp per row: y = u w + b, u = (x - mean) / deviation.
 *
 * Ba, Kiros and Hinton, arXiv 1607.06450. Statistics are sums over the piece of h that is here;
 * between two phases they become the sums over all of h. Where all of h is here, the last phase of
 * each direction does everything while a row is near, with the same bits, and those before it
 * nothing. */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/residual.h"

namespace
{

enum { X, W, B, Y, SUM, SQUARES };
enum { DOT_W = 4, DOT_U };

struct dots {
    float w, u; /* of dy w with 1, and with u */
};

/* What is said of a row is computed by the warp, and known to all its lanes. */
template <typename E> struct rows {
    int64_t count, hidden;
    float width, epsilon; /* width: all of h */
    const E *x, *w, *b, *dy;
    E *y, *dx;
    bool add; /* to dx */
    float *sums, *squares, *dots_w, *dots_u;

    bool whole(void) const
    {
        return hidden == (int64_t)width;
    }
    __device__ float scale_of(float squares) const
    {
        return 1 / sqrtf(squares / width + epsilon);
    }
    __device__ float mean(int64_t row) const
    {
        return sums[row] / width;
    }
    /* u = (x - mean) * scale */
    __device__ float scale(int64_t row) const
    {
        return scale_of(squares[row]);
    }

    __device__ float sum_row(int64_t row) const
    {
        float sum = 0;
        for (int64_t i = lane_of(); i < hidden; i += WARP)
            sum += wide(x[row * hidden + i]);
        return warp_sum(sum);
    }
    __device__ float square_row(int64_t row, float mean) const
    {
        float sum = 0;
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            float deviation = wide(x[row * hidden + i]) - mean;
            sum += deviation * deviation;
        }
        return warp_sum(sum);
    }
    __device__ void normalise_row(int64_t row, float mean, float scale) const
    {
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            int64_t at = row * hidden + i;
            set_at(&y[at], (wide(x[at]) - mean) * scale * wide(w[i]) + wide(b[i]));
        }
    }
    __device__ struct dots dot_row(int64_t row) const
    {
        float mean = this->mean(row), scale = this->scale(row), sum = 0, sum_u = 0;
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            int64_t at = row * hidden + i;
            float du = wide(dy[at]) * wide(w[i]);
            sum += du;
            sum_u += du * (wide(x[at]) - mean) * scale;
        }
        return {warp_sum(sum), warp_sum(sum_u)};
    }
    /* dx = (dy w - (dot_w + u dot_u) / width) / deviation */
    __device__ void slope_row(int64_t row, struct dots dots) const
    {
        float mean = this->mean(row), scale = this->scale(row);
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            int64_t at = row * hidden + i;
            float u = (wide(x[at]) - mean) * scale;
            float rest = (dots.w + u * dots.u) / width;
            put_at(&dx[at], add, (wide(dy[at]) * wide(w[i]) - rest) * scale);
        }
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
            (E *)call->operand[Y].data,
            (E *)call->gradient[X].data,
            call_accumulates(call, X),
            (float *)call->operand[SUM].data,
            (float *)call->operand[SQUARES].data,
            (float *)call->gradient[DOT_W].data,
            (float *)call->gradient[DOT_U].data};
}

template <typename E>
struct sum {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        row_leave(&rows.sums[row], rows.sum_row(row));
    }
};

template <typename E> struct square {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        row_leave(&rows.squares[row], rows.square_row(row, rows.mean(row)));
    }
};

template <typename E> struct normalise {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.normalise_row(row, rows.mean(row), rows.scale(row));
    }
};

template <typename E> struct forward_whole {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        float sum = rows.sum_row(row), mean = sum / rows.width;
        float squares = rows.square_row(row, mean);
        row_leave(&rows.sums[row], sum);
        row_leave(&rows.squares[row], squares);
        rows.normalise_row(row, mean, rows.scale_of(squares));
    }
};

template <typename E> struct dot {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        struct dots dots = rows.dot_row(row);
        row_leave(&rows.dots_w[row], dots.w);
        row_leave(&rows.dots_u[row], dots.u);
    }
};

template <typename E> struct slope {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.slope_row(row, {rows.dots_w[row], rows.dots_u[row]});
    }
};

template <typename E> struct slope_whole {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.slope_row(row, rows.dot_row(row));
    }
};

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
    if (!rows.whole())
        launch_each_row("norm", rows.count, sum<E>{rows});
}

template <typename E> void forward_squares(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    if (!rows.whole())
        launch_each_row("norm", rows.count, square<E>{rows});
}

template <typename E> void forward_output(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    if (rows.whole())
        launch_each_row("norm", rows.count, forward_whole<E>{rows});
    else
        launch_each_row("norm", rows.count, normalise<E>{rows});
}

template <typename E>
bool add_forward(const struct kernel_call *sum, const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    if (!rows.whole() || !residual_is(sum, call))
        return false;
    residual_launch<E>("norm", sum, forward_whole<E>{rows});
    return true;
}

template <typename E> void backward_dots(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    if (!rows.whole())
        launch_each_row("norm backward", rows.count, dot<E>{rows});
}

template <typename E> void backward_gradients(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    const struct view *dw = &call->gradient[W], *db = &call->gradient[B];
    /* The weights' first: the gradient of x may lie where that of y does. */
    if (dw->data)
        columns_sum("norm backward", weight_given<E>{rows}, rows.count, rows.hidden, dw);
    if (db->data)
        columns_sum("norm backward", bias_given<E>{rows}, rows.count, rows.hidden, db);
    if (rows.dx && rows.whole())
        launch_each_row("norm backward", rows.count, slope_whole<E>{rows});
    else if (rows.dx)
        launch_each_row("norm backward", rows.count, slope<E>{rows});
}

} // namespace

bool cuda_add_norm(const struct kernel_call *sum, const struct kernel_call *norm)
{
    return norm->element == ELEMENT_BF16 ? add_forward<bf16>(sum, norm)
                                         : add_forward<float>(sum, norm);
}

const struct kernel cuda_norm = {
    "norm",
    {{EITHER(forward_sum), EITHER(forward_squares), EITHER(forward_output)},
     {EITHER(backward_dots), EITHER(backward_gradients)}},
};
