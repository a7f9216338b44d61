/* norm.cu - layer and root-mean-square normalisation, a warp per row. Formulas and statistics:
 * plain/norm.c.
 *
 * If this rank has whole rows, the last phase of each direction does all the work while a row is in
 * the cache, and the earlier phases do nothing; the results have the same bits. */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/residual.h"

namespace
{

enum { X, W, B };

struct dots {
    float w, u; /* of dy w with ones, and with u */
};

/* The rows of a call. Methods that take a row are called by a whole warp, and all its lanes get the
 * result. Rows that are not centred (rmsnorm) have neither b nor a mean, and so no sums or dots_w:
 * these are NULL. */
template <typename E, bool centred> struct rows {
    int64_t count, hidden;
    float width, epsilon; /* width: of the whole row; hidden: of the part here */
    const E *x, *w, *b, *dy;
    E *y, *dx;
    bool add; /* to dx */
    float *sums, *squares, *dots_w, *dots_u;

    bool whole(void) const
    {
        return hidden == (int64_t)width;
    }
    __device__ float mean_of(float sum) const
    {
        return centred ? sum / width : 0;
    }
    __device__ float scale_of(float squares) const
    {
        return 1 / sqrtf(squares / width + epsilon);
    }
    __device__ float mean(int64_t row) const
    {
        return centred ? mean_of(sums[row]) : 0;
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
            float bias = centred ? wide(b[i]) : 0;
            set_at(&y[at], (wide(x[at]) - mean) * scale * wide(w[i]) + bias);
        }
    }
    __device__ struct dots dot_row(int64_t row) const
    {
        float mean = this->mean(row), sum = 0, sum_x = 0;
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            int64_t at = row * hidden + i;
            float du = wide(dy[at]) * wide(w[i]);
            sum += du;
            sum_x += du * (wide(x[at]) - mean);
        }
        return {centred ? warp_sum(sum) : 0, warp_sum(sum_x) * scale(row)};
    }
    /* dx = (dy w - (dot_w + u dot_u) / width) / deviation */
    __device__ void slope_row(int64_t row, struct dots dots) const
    {
        float mean = this->mean(row), scale = this->scale(row);
        float constant = dots.w / width, slope = dots.u / width * scale;
        for (int64_t i = lane_of(); i < hidden; i += WARP) {
            int64_t at = row * hidden + i;
            float rest = (wide(x[at]) - mean) * slope + constant;
            put_at(&dx[at], add, (wide(dy[at]) * wide(w[i]) - rest) * scale);
        }
    }
};

template <typename E, bool centred>
struct rows<E, centred> rows_of(const struct kernel_call *call) {
    const struct box *box = &call->operand[X].box;
    int y = operation_output(call->node->operation);
    int first = y + 1, last = centred ? first + 1 : first; /* statistics */
    return {call_rows(box),
            call_width(box),
            (float)call_whole_width(call, X),
            call->node->epsilon,
            (const E *)call->operand[X].data,
            (const E *)call->operand[W].data,
            centred ? (const E *)call->operand[B].data : NULL,
            (const E *)call->gradient[y].data,
            (E *)call->operand[y].data,
            (E *)call->gradient[X].data,
            call_accumulates(call, X),
            centred ? (float *)call->operand[first].data : NULL,
            (float *)call->operand[last].data,
            centred ? (float *)call->gradient[first].data : NULL,
            (float *)call->gradient[last].data};
}

template <typename E>
struct sum {
    struct rows<E, true> rows;
    __device__ void operator()(int64_t row) const
    {
        row_leave(&rows.sums[row], rows.sum_row(row));
    }
};

template <typename E, bool centred> struct square {
    struct rows<E, centred> rows;
    __device__ void operator()(int64_t row) const
    {
        row_leave(&rows.squares[row], rows.square_row(row, rows.mean(row)));
    }
};

template <typename E, bool centred> struct normalise {
    struct rows<E, centred> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.normalise_row(row, rows.mean(row), rows.scale(row));
    }
};

template <typename E, bool centred> struct forward_whole {
    struct rows<E, centred> rows;
    __device__ void operator()(int64_t row) const
    {
        float sum = centred ? rows.sum_row(row) : 0, mean = rows.mean_of(sum);
        float squares = rows.square_row(row, mean);
        if (centred)
            row_leave(&rows.sums[row], sum);
        row_leave(&rows.squares[row], squares);
        rows.normalise_row(row, mean, rows.scale_of(squares));
    }
};

template <typename E, bool centred> struct dot {
    struct rows<E, centred> rows;
    __device__ void operator()(int64_t row) const
    {
        struct dots dots = rows.dot_row(row);
        if (centred)
            row_leave(&rows.dots_w[row], dots.w);
        row_leave(&rows.dots_u[row], dots.u);
    }
};

template <typename E, bool centred> struct slope {
    struct rows<E, centred> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.slope_row(row, {centred ? rows.dots_w[row] : 0, rows.dots_u[row]});
    }
};

template <typename E, bool centred> struct slope_whole {
    struct rows<E, centred> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.slope_row(row, rows.dot_row(row));
    }
};

/* dw = sum of dy u, db = sum of dy */
template <typename E, bool centred> struct weight_given {
    struct rows<E, centred> rows;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        int64_t at = row * rows.hidden + column;
        return wide(rows.dy[at]) * (wide(rows.x[at]) - rows.mean(row)) * rows.scale(row);
    }
};

template <typename E> struct bias_given {
    struct rows<E, true> rows;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        return wide(rows.dy[row * rows.hidden + column]);
    }
};

template <bool centred> constexpr const char *forward_words = centred ? "norm" : "rmsnorm";
template <bool centred>
constexpr const char *backward_words = centred ? "norm backward" : "rmsnorm backward";

template <typename E> void forward_sum(const struct kernel_call *call)
{
    struct rows<E, true> rows = rows_of<E, true>(call);
    if (!rows.whole())
        launch_each_row(forward_words<true>, rows.count, sum<E>{rows});
}

template <typename E, bool centred> void forward_squares(const struct kernel_call *call)
{
    struct rows<E, centred> rows = rows_of<E, centred>(call);
    if (!rows.whole())
        launch_each_row(forward_words<centred>, rows.count, square<E, centred>{rows});
}

template <typename E, bool centred> void forward_output(const struct kernel_call *call)
{
    struct rows<E, centred> rows = rows_of<E, centred>(call);
    if (rows.whole())
        launch_each_row(forward_words<centred>, rows.count, forward_whole<E, centred>{rows});
    else
        launch_each_row(forward_words<centred>, rows.count, normalise<E, centred>{rows});
}

template <typename E, bool centred>
bool add_forward(const struct kernel_call *sum, const struct kernel_call *call)
{
    struct rows<E, centred> rows = rows_of<E, centred>(call);
    if (!rows.whole() || !residual_is(sum, call))
        return false;
    residual_launch<E>(forward_words<centred>, sum, forward_whole<E, centred>{rows});
    return true;
}

template <bool centred>
bool add_either(const struct kernel_call *sum, const struct kernel_call *norm)
{
    return norm->element == ELEMENT_BF16 ? add_forward<bf16, centred>(sum, norm)
                                         : add_forward<float, centred>(sum, norm);
}

template <typename E, bool centred> void backward_dots(const struct kernel_call *call)
{
    struct rows<E, centred> rows = rows_of<E, centred>(call);
    if (!rows.whole())
        launch_each_row(backward_words<centred>, rows.count, dot<E, centred>{rows});
}

template <typename E, bool centred> void backward_gradients(const struct kernel_call *call)
{
    struct rows<E, centred> rows = rows_of<E, centred>(call);
    const char *what = backward_words<centred>;
    const struct view *dw = &call->gradient[W];
    /* The weights come first, because the gradient of x may share memory with that of y. */
    if (dw->data)
        columns_sum(what, weight_given<E, centred>{rows}, rows.count, rows.hidden, dw);
    if constexpr (centred) {
        const struct view *db = &call->gradient[B];
        if (db->data)
            columns_sum(what, bias_given<E>{rows}, rows.count, rows.hidden, db);
    }
    if (rows.dx && rows.whole())
        launch_each_row(what, rows.count, slope_whole<E, centred>{rows});
    else if (rows.dx)
        launch_each_row(what, rows.count, slope<E, centred>{rows});
}

} // namespace

bool cuda_add_norm(const struct kernel_call *sum, const struct kernel_call *norm)
{
    return add_either<true>(sum, norm);
}

bool cuda_add_rmsnorm(const struct kernel_call *sum, const struct kernel_call *norm)
{
    return add_either<false>(sum, norm);
}

#define EITHER_OF(kernel, centred) either<kernel<float, centred>, kernel<bf16, centred>>

const struct kernel cuda_norm = {
    "norm",
    {{EITHER(forward_sum), EITHER_OF(forward_squares, true), EITHER_OF(forward_output, true)},
     {EITHER_OF(backward_dots, true), EITHER_OF(backward_gradients, true)}},
};

const struct kernel cuda_rmsnorm = {
    "rmsnorm",
    {{EITHER_OF(forward_squares, false), EITHER_OF(forward_output, false)},
     {EITHER_OF(backward_dots, false), EITHER_OF(backward_gradients, false)}},
};
