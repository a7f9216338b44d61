/* rmsnorm.c - y = x r w, r = 1 / sqrt(mean of x^2 + epsilon), row by row.
 *
 * Where whole rows are here, the last phase of each direction does everything while a row is in
 * the first cache, and those before it nothing. Formulas: plain/rmsnorm.c. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/numbers.h"

#include <math.h>

#define STRIP 256 /* columns whose sums are kept at once */
#define CHUNK 128 /* rows summed in f32 before they join a sum in double */

enum { X, W, Y, SQUARES, DOT = 3 };

struct norm {
    enum element element;
    int64_t rows, hidden;
    float width, epsilon; /* width: of the whole row */
    const void *x, *w, *dy;
    float *squares, *dot;
    void *y, *dx;
    const struct view *dw;
    bool add;
};

static struct norm norm_of(const struct kernel_call *call)
{
    return (struct norm){
        .element = call->element,
        .rows = call_rows(&call->operand[X].box),
        .hidden = call_width(&call->operand[X].box),
        .width = (float)call_whole_width(call, X),
        .epsilon = call->node->epsilon,
        .x = call->operand[X].data,
        .w = call->operand[W].data,
        .dy = call->gradient[Y].data,
        .squares = call->operand[SQUARES].data,
        .dot = call->gradient[DOT].data,
        .y = call->operand[Y].data,
        .dx = call->gradient[X].data,
        .dw = &call->gradient[W],
        .add = call_accumulates(call, X),
    };
}

INLINED bool whole(const struct norm *norm)
{
    return norm->hidden == (int64_t)norm->width;
}

INLINED float row_scale(const struct norm *norm, int64_t row)
{
    return 1 / sqrtf(norm->squares[row] / norm->width + norm->epsilon);
}

INLINED void row_squares(const struct norm *norm, int64_t row, enum element e)
{
    const void *x = from_number(norm->x, e, row * norm->hidden);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < norm->hidden; i++)
        sum += load(x, e, i) * load(x, e, i);
    norm->squares[row] = sum;
}

INLINED void row_output(const struct norm *norm, int64_t row, enum element e)
{
    const void *x = from_number(norm->x, e, row * norm->hidden), *w = norm->w;
    void *y = from_number(norm->y, e, row * norm->hidden);
    float scale = row_scale(norm, row);
#pragma omp simd
    for (int64_t i = 0; i < norm->hidden; i++)
        store(y, e, i, load(x, e, i) * scale * load(w, e, i));
}

INLINED void row_dot(const struct norm *norm, int64_t row, enum element e)
{
    const void *x = from_number(norm->x, e, row * norm->hidden);
    const void *dy = from_number(norm->dy, e, row * norm->hidden), *w = norm->w;
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < norm->hidden; i++)
        dot += load(dy, e, i) * load(w, e, i) * load(x, e, i);
    norm->dot[row] = dot;
}

/* dx = r (dy w - x r^2 dot / width). May write over dy. */
INLINED void row_input(const struct norm *norm, int64_t row, enum element e)
{
    const void *x = from_number(norm->x, e, row * norm->hidden);
    const void *dy = from_number(norm->dy, e, row * norm->hidden), *w = norm->w;
    void *dx = from_number(norm->dx, e, row * norm->hidden);
    float scale = row_scale(norm, row), slope = scale * scale * norm->dot[row] / norm->width;
    bool add = norm->add;
#pragma omp simd
    for (int64_t i = 0; i < norm->hidden; i++) {
        float through = load(dy, e, i) * load(w, e, i) - load(x, e, i) * slope;
        store(dx, e, i, (add ? load(dx, e, i) : 0) + through * scale);
    }
}

INLINED void square_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++)
        row_squares(norm, row, e);
}

INLINED void output_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++) {
        if (whole(norm))
            row_squares(norm, row, e);
        row_output(norm, row, e);
    }
}

INLINED void dot_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++)
        row_dot(norm, row, e);
}

INLINED void input_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++) {
        if (whole(norm))
            row_dot(norm, row, e);
        row_input(norm, row, e);
    }
}

INLINED void add_columns(const struct norm *norm, int64_t row, int64_t first, int64_t count,
                         float *sum, enum element e)
{
    const void *x = from_number(norm->x, e, row * norm->hidden + first);
    const void *dy = from_number(norm->dy, e, row * norm->hidden + first);
    float scale = row_scale(norm, row);
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        sum[i] += load(dy, e, i) * (load(x, e, i) * scale);
}

/* The gradient of w for columns [first, end). */
INLINED void sum_weights(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t strip = first; strip < end; strip += STRIP) {
        int64_t count = end - strip < STRIP ? end - strip : STRIP;
        double total[STRIP] = {0};
        for (int64_t chunk = 0; chunk < norm->rows; chunk += CHUNK) {
            float sum[STRIP] = {0};
            for (int64_t row = chunk; row < norm->rows && row < chunk + CHUNK; row++)
                add_columns(norm, row, strip, count, sum, e);
            for (int64_t i = 0; i < count; i++)
                total[i] += sum[i];
        }
        for (int64_t i = 0; i < count; i++)
            put(norm->dw, strip + i, true, total[i]);
    }
}

EITHER_ELEMENT(square_rows, norm)
EITHER_ELEMENT(output_rows, norm)
EITHER_ELEMENT(dot_rows, norm)
EITHER_ELEMENT(input_rows, norm)
EITHER_ELEMENT(sum_weights, norm)

static void forward_squares(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (!whole(&norm))
        parallel(norm.rows, 1, square_rows_range, &norm);
}

static void forward_output(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    parallel(norm.rows, 1, output_rows_range, &norm);
}

static void backward_dot(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (!whole(&norm))
        parallel(norm.rows, 1, dot_rows_range, &norm);
}

static void backward_gradients(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (norm.dw->data) /* first: dx may lie over dy */
        parallel(norm.hidden, 16, sum_weights_range, &norm);
    if (norm.dx)
        parallel(norm.rows, 1, input_rows_range, &norm);
}

const struct kernel cpu_rmsnorm = {
    "rmsnorm",
    {{forward_squares, forward_output}, {backward_dot, backward_gradients}},
};
