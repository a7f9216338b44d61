/* norm.c - layer and root-mean-square normalisation, row by row.
 *
 * If whole rows are here, the last phase of each direction does all the work while a row is in the
 * L1 cache, and earlier phases do nothing. Formulas and statistics: plain/plain.c. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/numbers.h"

#include <math.h>

#define STRIP 256 /* columns whose sums are held at a time */
#define CHUNK 128 /* rows summed in f32 before the sum is added to one in double */

enum { X, W, B };

struct norm {
    enum element element;
    bool centred, add;    /* centred: subtract the mean (layer norm); add: to dx */
    int64_t rows, hidden; /* hidden: width of the piece that is here */
    float width, epsilon; /* width: of the whole row */
    const void *x, *w, *b, *dy;
    float *sum, *squares, *dot_w, *dot_u;
    void *y, *dx;
    const struct view *dw, *db;
};

/* A norm without b (rmsnorm) has no mean, and so neither sum nor dot_w. */
static struct norm norm_of(const struct kernel_call *call)
{
    bool centred = call->node->operation->weight_count == 2;
    int y = operation_output(call->node->operation);
    int first = y + 1, last = centred ? first + 1 : first; /* indices of the statistics */
    return (struct norm){
        .element = call->element,
        .centred = centred,
        .add = call_accumulates(call, X),
        .rows = call_rows(&call->operand[X].box),
        .hidden = call_width(&call->operand[X].box),
        .width = (float)call_whole_width(call, X),
        .epsilon = call->node->epsilon,
        .x = call->operand[X].data,
        .w = call->operand[W].data,
        .b = centred ? call->operand[B].data : NULL,
        .dy = call->gradient[y].data,
        .sum = centred ? call->operand[first].data : NULL,
        .squares = call->operand[last].data,
        .dot_w = centred ? call->gradient[first].data : NULL,
        .dot_u = call->gradient[last].data,
        .y = call->operand[y].data,
        .dx = call->gradient[X].data,
        .dw = &call->gradient[W],
        .db = centred ? &call->gradient[B] : NULL,
    };
}

static bool whole(const struct norm *norm)
{
    return norm->hidden == (int64_t)norm->width;
}

/* Define the range_fn NAME_range from an INLINED void NAME(const struct norm *, first, end,
 * element, centred): as EITHER_ELEMENT(), and for centred as a constant too. */
#define EITHER_NORM(name)                                                                          \
    VECTORISED static void name##_range(const void *context, int64_t first, int64_t end)           \
    {                                                                                              \
        const struct norm *of = context;                                                           \
        bool f32 = of->element == ELEMENT_F32;                                                     \
        if (of->centred && f32)                                                                    \
            name(of, first, end, ELEMENT_F32, true);                                               \
        else if (of->centred)                                                                      \
            name(of, first, end, ELEMENT_BF16, true);                                              \
        else if (f32)                                                                              \
            name(of, first, end, ELEMENT_F32, false);                                              \
        else                                                                                       \
            name(of, first, end, ELEMENT_BF16, false);                                             \
    }

INLINED float row_mean(const struct norm *norm, int64_t row, bool centred)
{
    return centred ? norm->sum[row] / norm->width : 0;
}

INLINED float row_scale(const struct norm *norm, int64_t row)
{
    return 1 / sqrtf(norm->squares[row] / norm->width + norm->epsilon);
}

INLINED void row_sum(const struct norm *norm, int64_t row, enum element e)
{
    const void *x = from_number(norm->x, e, row * norm->hidden);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < norm->hidden; i++)
        sum += load(x, e, i);
    norm->sum[row] = sum;
}

INLINED void row_squares(const struct norm *norm, int64_t row, enum element e, bool centred)
{
    const void *x = from_number(norm->x, e, row * norm->hidden);
    float mean = row_mean(norm, row, centred), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < norm->hidden; i++)
        sum += (load(x, e, i) - mean) * (load(x, e, i) - mean);
    norm->squares[row] = sum;
}

INLINED void row_output(const struct norm *norm, int64_t row, enum element e, bool centred)
{
    const void *x = from_number(norm->x, e, row * norm->hidden), *w = norm->w, *b = norm->b;
    void *y = from_number(norm->y, e, row * norm->hidden);
    float mean = row_mean(norm, row, centred), scale = row_scale(norm, row);
#pragma omp simd
    for (int64_t i = 0; i < norm->hidden; i++) {
        float bias = centred ? load(b, e, i) : 0;
        store(y, e, i, (load(x, e, i) - mean) * scale * load(w, e, i) + bias);
    }
}

INLINED void sum_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++)
        row_sum(norm, row, e);
}

INLINED void square_rows(const struct norm *norm, int64_t first, int64_t end, enum element e,
                         bool centred)
{
    for (int64_t row = first; row < end; row++)
        row_squares(norm, row, e, centred);
}

INLINED void output_rows(const struct norm *norm, int64_t first, int64_t end, enum element e,
                         bool centred)
{
    for (int64_t row = first; row < end; row++)
        row_output(norm, row, e, centred);
}

INLINED void forward_rows(const struct norm *norm, int64_t first, int64_t end, enum element e,
                          bool centred)
{
    for (int64_t row = first; row < end; row++) {
        if (centred)
            row_sum(norm, row, e);
        row_squares(norm, row, e, centred);
        row_output(norm, row, e, centred);
    }
}

EITHER_ELEMENT(sum_rows, norm)
EITHER_NORM(square_rows)
EITHER_NORM(output_rows)
EITHER_NORM(forward_rows)

static void norm_forward_sum(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (!whole(&norm))
        parallel(norm.rows, 1, sum_rows_range, &norm);
}

static void norm_forward_squares(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (!whole(&norm))
        parallel(norm.rows, 1, square_rows_range, &norm);
}

static void norm_forward_output(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    parallel(norm.rows, 1, whole(&norm) ? forward_rows_range : output_rows_range, &norm);
}

INLINED void row_dots(const struct norm *norm, int64_t row, enum element e, bool centred)
{
    const void *x = from_number(norm->x, e, row * norm->hidden);
    const void *dy = from_number(norm->dy, e, row * norm->hidden), *w = norm->w;
    float mean = row_mean(norm, row, centred), dot_w = 0, dot_x = 0;
#pragma omp simd reduction(+ : dot_w, dot_x)
    for (int64_t i = 0; i < norm->hidden; i++) {
        float du = load(dy, e, i) * load(w, e, i);
        dot_w += du;
        dot_x += du * (load(x, e, i) - mean);
    }
    if (centred)
        norm->dot_w[row] = dot_w;
    norm->dot_u[row] = dot_x * row_scale(norm, row);
}

/* dx = (dy w - (dot_w + u dot_u) / width) / deviation. dx may share memory with dy. */
INLINED void row_input(const struct norm *norm, int64_t row, enum element e, bool centred)
{
    const void *x = from_number(norm->x, e, row * norm->hidden);
    const void *dy = from_number(norm->dy, e, row * norm->hidden), *w = norm->w;
    void *dx = from_number(norm->dx, e, row * norm->hidden);
    float mean = row_mean(norm, row, centred), scale = row_scale(norm, row);
    float constant = centred ? norm->dot_w[row] / norm->width : 0;
    float slope = norm->dot_u[row] / norm->width * scale;
    bool add = norm->add;
#pragma omp simd
    for (int64_t i = 0; i < norm->hidden; i++) {
        float rest = (load(x, e, i) - mean) * slope + constant;
        float through = (load(dy, e, i) * load(w, e, i) - rest) * scale;
        store(dx, e, i, (add ? load(dx, e, i) : 0) + through);
    }
}

INLINED void dot_rows(const struct norm *norm, int64_t first, int64_t end, enum element e,
                      bool centred)
{
    for (int64_t row = first; row < end; row++)
        row_dots(norm, row, e, centred);
}

INLINED void input_rows(const struct norm *norm, int64_t first, int64_t end, enum element e,
                        bool centred)
{
    for (int64_t row = first; row < end; row++)
        row_input(norm, row, e, centred);
}

INLINED void backward_rows(const struct norm *norm, int64_t first, int64_t end, enum element e,
                           bool centred)
{
    for (int64_t row = first; row < end; row++) {
        row_dots(norm, row, e, centred);
        row_input(norm, row, e, centred);
    }
}

EITHER_NORM(dot_rows)
EITHER_NORM(input_rows)
EITHER_NORM(backward_rows)

/* Add a row to the column sums of dy u and of dy. */
INLINED void add_columns(const struct norm *norm, int64_t row, int64_t first, int64_t count,
                         float *sum_u, float *sum, enum element e, bool centred)
{
    const void *x = from_number(norm->x, e, row * norm->hidden + first);
    const void *dy = from_number(norm->dy, e, row * norm->hidden + first);
    float mean = row_mean(norm, row, centred), scale = row_scale(norm, row);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        sum_u[i] += load(dy, e, i) * ((load(x, e, i) - mean) * scale);
        if (centred)
            sum[i] += load(dy, e, i);
    }
}

/* Compute the gradients of w and b for columns [first, end). */
INLINED void sum_weights(const struct norm *norm, int64_t first, int64_t end, enum element e,
                         bool centred)
{
    for (int64_t strip = first; strip < end; strip += STRIP) {
        int64_t count = end - strip < STRIP ? end - strip : STRIP;
        double total_u[STRIP] = {0}, total[STRIP] = {0};
        for (int64_t chunk = 0; chunk < norm->rows; chunk += CHUNK) {
            float sum_u[STRIP] = {0}, sum[STRIP] = {0};
            for (int64_t row = chunk; row < norm->rows && row < chunk + CHUNK; row++)
                add_columns(norm, row, strip, count, sum_u, sum, e, centred);
            for (int64_t i = 0; i < count; i++) {
                total_u[i] += sum_u[i];
                total[i] += sum[i];
            }
        }
        for (int64_t i = 0; norm->dw->data && i < count; i++)
            put(norm->dw, strip + i, true, total_u[i]);
        for (int64_t i = 0; centred && norm->db->data && i < count; i++)
            put(norm->db, strip + i, true, total[i]);
    }
}

EITHER_NORM(sum_weights)

static void norm_backward_dots(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (!whole(&norm))
        parallel(norm.rows, 1, dot_rows_range, &norm);
}

static void norm_backward_gradients(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    /* First, because dx may share memory with dy. */
    if (norm.dw->data || (norm.centred && norm.db->data))
        parallel(norm.hidden, 16, sum_weights_range, &norm);
    if (norm.dx)
        parallel(norm.rows, 1, whole(&norm) ? backward_rows_range : input_rows_range, &norm);
}

const struct kernel cpu_norm = {
    "norm",
    {{norm_forward_sum, norm_forward_squares, norm_forward_output},
     {norm_backward_dots, norm_backward_gradients}},
};

const struct kernel cpu_rmsnorm = {
    "rmsnorm",
    {{norm_forward_squares, norm_forward_output}, {norm_backward_dots, norm_backward_gradients}},
};
