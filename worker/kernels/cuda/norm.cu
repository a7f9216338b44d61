/* norm.cu - layer and root-mean-square normalisation, a warp per row. Formulas and statistics:
 * plain/plain.c.
 *
 * If this rank has whole rows, the last phase of each direction does all the work, and the earlier
 * phases do nothing: as in norm_whole.cu where that is possible, otherwise while a row is in the
 * cache. */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/norm.h"

namespace
{

template <typename E> struct norm_sum {
    struct norm_rows<E, true> rows;
    __device__ void operator()(int64_t row) const
    {
        row_leave(&rows.sums[row], rows.sum_row(row));
    }
};

template <typename E, bool centred> struct norm_square {
    struct norm_rows<E, centred> rows;
    __device__ void operator()(int64_t row) const
    {
        row_leave(&rows.squares[row], rows.square_row(row, rows.mean(row)));
    }
};

template <typename E, bool centred> struct norm_normalise {
    struct norm_rows<E, centred> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.normalise_row(row, rows.mean(row), rows.scale(row));
    }
};

template <typename E, bool centred> struct norm_forward_row {
    struct norm_rows<E, centred> rows;
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

template <typename E, bool centred> struct norm_dot {
    struct norm_rows<E, centred> rows;
    __device__ void operator()(int64_t row) const
    {
        struct dots dots = rows.dot_row(row);
        if (centred)
            row_leave(&rows.dots_w[row], dots.w);
        row_leave(&rows.dots_u[row], dots.u);
    }
};

template <typename E, bool centred> struct norm_slope {
    struct norm_rows<E, centred> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.slope_row(row, {centred ? rows.dots_w[row] : 0, rows.dots_u[row]});
    }
};

template <typename E, bool centred> struct norm_slope_whole {
    struct norm_rows<E, centred> rows;
    __device__ void operator()(int64_t row) const
    {
        rows.slope_row(row, rows.dot_row(row));
    }
};

/* dw = sum of dy u, db = sum of dy */
template <typename E, bool centred> struct norm_weight_given {
    struct norm_rows<E, centred> rows;
    template <int N> __device__ numbers<N> at(int64_t row, int64_t column) const
    {
        int64_t at = row * rows.hidden + column;
        struct numbers<N> dw = numbers_at<N>(&rows.dy[at]), x = numbers_at<N>(&rows.x[at]);
        for (int k = 0; k < N; k++)
            dw.of[k] *= (x.of[k] - rows.mean(row)) * rows.scale(row);
        return dw;
    }
};

template <typename E> struct norm_bias_given {
    struct norm_rows<E, true> rows;
    template <int N> __device__ numbers<N> at(int64_t row, int64_t column) const
    {
        return numbers_at<N>(&rows.dy[row * rows.hidden + column]);
    }
};

template <bool centred> constexpr const char *norm_forward_words = centred ? "norm" : "rmsnorm";
template <bool centred>
constexpr const char *norm_backward_words = centred ? "norm backward" : "rmsnorm backward";

template <typename E> void norm_forward_sum(const struct kernel_call *call)
{
    struct norm_rows<E, true> rows = norm_rows_of<E, true>(call);
    if (!rows.whole())
        launch_each_row(norm_forward_words<true>, rows.count, norm_sum<E>{rows});
}

template <typename E, bool centred> void norm_forward_squares(const struct kernel_call *call)
{
    struct norm_rows<E, centred> rows = norm_rows_of<E, centred>(call);
    if (!rows.whole())
        launch_each_row(norm_forward_words<centred>, rows.count, norm_square<E, centred>{rows});
}

template <typename E, bool centred> void norm_forward_output(const struct kernel_call *call)
{
    struct norm_rows<E, centred> rows = norm_rows_of<E, centred>(call);
    if (!rows.whole())
        launch_each_row(norm_forward_words<centred>, rows.count, norm_normalise<E, centred>{rows});
    else if (!norm_forward_whole(NULL, call, centred))
        launch_each_row(norm_forward_words<centred>, rows.count,
                        norm_forward_row<E, centred>{rows});
}

template <typename E, bool centred>
bool norm_add_forward(const struct kernel_call *sum, const struct kernel_call *call)
{
    struct norm_rows<E, centred> rows = norm_rows_of<E, centred>(call);
    if (!rows.whole() || !residual_is(sum, call))
        return false;
    if (!norm_forward_whole(sum, call, centred))
        residual_launch<E>(norm_forward_words<centred>, sum, norm_forward_row<E, centred>{rows});
    return true;
}

template <bool centred>
bool norm_add_either(const struct kernel_call *sum, const struct kernel_call *norm)
{
    return norm->element == ELEMENT_BF16 ? norm_add_forward<bf16, centred>(sum, norm)
                                         : norm_add_forward<float, centred>(sum, norm);
}

template <typename E, bool centred> void norm_backward_dots(const struct kernel_call *call)
{
    struct norm_rows<E, centred> rows = norm_rows_of<E, centred>(call);
    if (!rows.whole())
        launch_each_row(norm_backward_words<centred>, rows.count, norm_dot<E, centred>{rows});
}

template <typename E, bool centred> void norm_backward_gradients(const struct kernel_call *call)
{
    struct norm_rows<E, centred> rows = norm_rows_of<E, centred>(call);
    const char *what = norm_backward_words<centred>;
    const struct view *dw = &call->gradient[NORM_W];
    bool packed = packs(rows.hidden, {rows.x, rows.dy});
    if (rows.whole() && norm_backward_whole(call, centred))
        return;
    /* The weights come first, because the gradient of x may share memory with that of y. */
    if (dw->data)
        columns_sum(what, norm_weight_given<E, centred>{rows}, packed, rows.count, rows.hidden, dw);
    if constexpr (centred) {
        const struct view *db = &call->gradient[NORM_B];
        if (db->data)
            columns_sum(what, norm_bias_given<E>{rows}, packed, rows.count, rows.hidden, db);
    }
    if (rows.dx && rows.whole())
        launch_each_row(what, rows.count, norm_slope_whole<E, centred>{rows});
    else if (rows.dx)
        launch_each_row(what, rows.count, norm_slope<E, centred>{rows});
}

} // namespace

bool cuda_add_norm(const struct kernel_call *sum, const struct kernel_call *norm)
{
    return norm_add_either<true>(sum, norm);
}

bool cuda_add_rmsnorm(const struct kernel_call *sum, const struct kernel_call *norm)
{
    return norm_add_either<false>(sum, norm);
}

#define EITHER_OF(kernel, centred) either<kernel<float, centred>, kernel<bf16, centred>>

const struct kernel cuda_norm = {
    "norm",
    {{EITHER(norm_forward_sum), EITHER_OF(norm_forward_squares, true),
      EITHER_OF(norm_forward_output, true)},
     {EITHER_OF(norm_backward_dots, true), EITHER_OF(norm_backward_gradients, true)}},
};

const struct kernel cuda_rmsnorm = {
    "rmsnorm",
    {{EITHER_OF(norm_forward_squares, false), EITHER_OF(norm_forward_output, false)},
     {EITHER_OF(norm_backward_dots, false), EITHER_OF(norm_backward_gradients, false)}},
};
