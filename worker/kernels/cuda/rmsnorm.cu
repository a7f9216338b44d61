/* rmsnorm.cu - a warp per row: y = x r w, r = 1 / sqrt(mean of x^2 + epsilon): Zhang and Sennrich,
 * arXiv 1910.07467.
 *
 * Statistics are sums over the piece of x's last dim that is here; between two phases they become
 * the sums over all of it. Where whole rows are here, the last phase does everything: as in
 * norm.cu.
 */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/residual.h"

namespace
{

enum { X, W, Y, SQUARES, DOT = 3 };

/* What is said of a row is computed by the warp, and known to all its lanes. */
template <typename E> struct rows {
    int64_t count, hidden;
    float width, epsilon; /* width: of the whole row */
    const E *x, *w, *dy;
    E *y, *dx;
    bool add; /* to dx */
    float *squares, *dots;

    bool whole(void) const
    {
        return hidden == (int64_t)width;
    }
    __device__ float scale_of(float squares) const
    {
        return 1 / sqrtf(squares / width + epsilon);
    }
    __device__ float scale(int64_t row) const
    {
        return scale_of(squares[row]);
    }

    __device__ float square_row(int64_t row) const
    {
        float sum = 0;
        for (int64_t i = lane_of(); i < hidden; i += WARP)
            sum += wide(x[row * hidden + i]) * wide(x[row * hidden + i]);
        return warp_sum(sum);
    }
    __device__ void normalise_row(int64_t row, float r) const
    {
        for (int64_t i = lane_of(); i < hidden; i += WARP)
            set_at(&y[row * hidden + i], wide(x[row * hidden + i]) * r * wide(w[i]));
    }
    __device__ float dot_row(int64_t row) const
    {
        float sum = 0;
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            int64_t at = row * hidden + i;
            sum += wide(dy[at]) * wide(w[i]) * wide(x[at]);
        }
        return warp_sum(sum);
    }
    /* dx = r (dy w - x r^2 dot / width) */
    __device__ void slope_row(int64_t row, float dot) const
    {
        float r = scale(row), share = r * r * dot / width;
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            int64_t at = row * hidden + i;
            put_at(&dx[at], add, r * (wide(dy[at]) * wide(w[i]) - wide(x[at]) * share));
        }
    }
};

template <typename E> struct rows<E> rows_of(const struct kernel_call *call) {
    const struct box *box = &call->operand[X].box;
    return {call_rows(box),
            call_width(box),
            (float)call_whole_width(call, X),
            call->node->epsilon,
            (const E *)call->operand[X].data,
            (const E *)call->operand[W].data,
            (const E *)call->gradient[Y].data,
            (E *)call->operand[Y].data,
            (E *)call->gradient[X].data,
            call_accumulates(call, X),
            (float *)call->operand[SQUARES].data,
            (float *)call->gradient[DOT].data};
}

template <typename E>
struct square {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        row_leave(&rows.squares[row], rows.square_row(row));
    }
};

template <typename E> struct normalise {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.normalise_row(row, rows.scale(row));
    }
};

template <typename E> struct forward_whole {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        float squares = rows.square_row(row);
        row_leave(&rows.squares[row], squares);
        rows.normalise_row(row, rows.scale_of(squares));
    }
};

template <typename E> struct dot {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        row_leave(&rows.dots[row], rows.dot_row(row));
    }
};

template <typename E> struct slope {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.slope_row(row, rows.dots[row]);
    }
};

template <typename E> struct slope_whole {
    struct rows<E> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.slope_row(row, rows.dot_row(row));
    }
};

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
    if (!rows.whole())
        launch_each_row("rmsnorm", rows.count, square<E>{rows});
}

template <typename E> void forward_output(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    if (rows.whole())
        launch_each_row("rmsnorm", rows.count, forward_whole<E>{rows});
    else
        launch_each_row("rmsnorm", rows.count, normalise<E>{rows});
}

template <typename E>
bool add_forward(const struct kernel_call *sum, const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    if (!rows.whole() || !residual_is(sum, call))
        return false;
    residual_launch<E>("rmsnorm", sum, forward_whole<E>{rows});
    return true;
}

template <typename E> void backward_dot(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    if (!rows.whole())
        launch_each_row("rmsnorm backward", rows.count, dot<E>{rows});
}

template <typename E> void backward_gradients(const struct kernel_call *call)
{
    struct rows<E> rows = rows_of<E>(call);
    const struct view *dw = &call->gradient[W];
    /* The weight's first: the gradient of x may lie where that of y does. */
    if (dw->data)
        columns_sum("rmsnorm backward", given<E>{rows}, rows.count, rows.hidden, dw);
    if (rows.dx && rows.whole())
        launch_each_row("rmsnorm backward", rows.count, slope_whole<E>{rows});
    else if (rows.dx)
        launch_each_row("rmsnorm backward", rows.count, slope<E>{rows});
}

} // namespace

bool cuda_add_rmsnorm(const struct kernel_call *sum, const struct kernel_call *norm)
{
    return norm->element == ELEMENT_BF16 ? add_forward<bf16>(sum, norm)
                                         : add_forward<float>(sum, norm);
}

const struct kernel cuda_rmsnorm = {"rmsnorm",
                                    {{EITHER(forward_squares), EITHER(forward_output)},
                                     {EITHER(backward_dot), EITHER(backward_gradients)}}};
