/* norm.c - layer normalisation, row by row.
 *
 * Where all of h is here, the last phase of each direction does everything while a row is in
 * the first cache, and those before it nothing. Statistics are as in plain/norm.c. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/numbers.h"

#include <math.h>

#define STRIP 256 /* columns whose sums are kept at once */
#define CHUNK 128 /* rows summed in f32 before they join a sum in double */

enum { X, W, B, Y, SUM, SQUARES };
enum { DOT_W = 4, DOT_U };

struct norm {
    enum element element;
    int64_t rows, hidden;
    float width, epsilon; /* width: of the whole h */
    const void *x, *w, *b, *dy;
    float *sum, *squares, *dot_w, *dot_u;
    void *y, *dx;
    const struct view *dw, *db;
    bool add;
};

static struct norm norm_of(const struct kernel_call *call)
{
    return (struct norm){
        .element = call->element,
        .rows = call_rows(&call->operand[X].box),
        .hidden = box_length(&call->operand[X].box, 2),
        .width = (float)sizes_get(&call->sizes, 'h'),
        .epsilon = call->node->epsilon,
        .x = call->operand[X].data,
        .w = call->operand[W].data,
        .b = call->operand[B].data,
        .dy = call->gradient[Y].data,
        .sum = call->operand[SUM].data,
        .squares = call->operand[SQUARES].data,
        .dot_w = call->gradient[DOT_W].data,
        .dot_u = call->gradient[DOT_U].data,
        .y = call->operand[Y].data,
        .dx = call->gradient[X].data,
        .dw = &call->gradient[W],
        .db = &call->gradient[B],
        .add = call_accumulates(call, X),
    };
}

static bool whole(const struct norm *norm)
{
    return norm->hidden == (int64_t)norm->width;
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

INLINED void row_squares(const struct norm *norm, int64_t row, enum element e)
{
    const void *x = from_number(norm->x, e, row * norm->hidden);
    float mean = norm->sum[row] / norm->width, sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < norm->hidden; i++)
        sum += (load(x, e, i) - mean) * (load(x, e, i) - mean);
    norm->squares[row] = sum;
}

INLINED void row_output(const struct norm *norm, int64_t row, enum element e)
{
    const void *x = from_number(norm->x, e, row * norm->hidden), *w = norm->w, *b = norm->b;
    void *y = from_number(norm->y, e, row * norm->hidden);
    float mean = norm->sum[row] / norm->width, scale = row_scale(norm, row);
#pragma omp simd
    for (int64_t i = 0; i < norm->hidden; i++)
        store(y, e, i, (load(x, e, i) - mean) * scale * load(w, e, i) + load(b, e, i));
}

INLINED void sum_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++)
        row_sum(norm, row, e);
}

INLINED void square_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++)
        row_squares(norm, row, e);
}

INLINED void output_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++)
        row_output(norm, row, e);
}

INLINED void forward_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++) {
        row_sum(norm, row, e);
        row_squares(norm, row, e);
        row_output(norm, row, e);
    }
}

EITHER_ELEMENT(sum_rows, norm)
EITHER_ELEMENT(square_rows, norm)
EITHER_ELEMENT(output_rows, norm)
EITHER_ELEMENT(forward_rows, norm)

static void forward_sum(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (!whole(&norm))
        parallel(norm.rows, 1, sum_rows_range, &norm);
}

static void forward_squares(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (!whole(&norm))
        parallel(norm.rows, 1, square_rows_range, &norm);
}

static void forward_output(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    parallel(norm.rows, 1, whole(&norm) ? forward_rows_range : output_rows_range, &norm);
}

INLINED void row_dots(const struct norm *norm, int64_t row, enum element e)
{
    const void *x = from_number(norm->x, e, row * norm->hidden);
    const void *dy = from_number(norm->dy, e, row * norm->hidden), *w = norm->w;
    float mean = norm->sum[row] / norm->width, dot_w = 0, dot_x = 0;
#pragma omp simd reduction(+ : dot_w, dot_x)
    for (int64_t i = 0; i < norm->hidden; i++) {
        float du = load(dy, e, i) * load(w, e, i);
        dot_w += du;
        dot_x += du * (load(x, e, i) - mean);
    }
    norm->dot_w[row] = dot_w;
    norm->dot_u[row] = dot_x * row_scale(norm, row);
}

/* dx = (dy w - (dot_w + u dot_u) / width) / deviation. May write over dy. */
INLINED void row_input(const struct norm *norm, int64_t row, enum element e)
{
    const void *x = from_number(norm->x, e, row * norm->hidden);
    const void *dy = from_number(norm->dy, e, row * norm->hidden), *w = norm->w;
    void *dx = from_number(norm->dx, e, row * norm->hidden);
    float mean = norm->sum[row] / norm->width, scale = row_scale(norm, row);
    float constant = norm->dot_w[row] / norm->width;
    float slope = norm->dot_u[row] / norm->width * scale;
    if (norm->add) {
#pragma omp simd
        for (int64_t i = 0; i < norm->hidden; i++) {
            float u = (load(x, e, i) - mean) * slope + constant;
            store(dx, e, i, load(dx, e, i) + (load(dy, e, i) * load(w, e, i) - u) * scale);
        }
    } else {
#pragma omp simd
        for (int64_t i = 0; i < norm->hidden; i++) {
            float u = (load(x, e, i) - mean) * slope + constant;
            store(dx, e, i, (load(dy, e, i) * load(w, e, i) - u) * scale);
        }
    }
}

INLINED void dot_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++)
        row_dots(norm, row, e);
}

INLINED void input_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++)
        row_input(norm, row, e);
}

INLINED void backward_rows(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++) {
        row_dots(norm, row, e);
        row_input(norm, row, e);
    }
}

EITHER_ELEMENT(dot_rows, norm)
EITHER_ELEMENT(input_rows, norm)
EITHER_ELEMENT(backward_rows, norm)

/* Over the rows of a chunk: columns of dy u, and of dy. */
INLINED void add_columns(const struct norm *norm, int64_t row, int64_t first, int64_t count,
                         float *sum_u, float *sum, enum element e)
{
    const void *x = from_number(norm->x, e, row * norm->hidden + first);
    const void *dy = from_number(norm->dy, e, row * norm->hidden + first);
    float mean = norm->sum[row] / norm->width, scale = row_scale(norm, row);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        sum_u[i] += load(dy, e, i) * ((load(x, e, i) - mean) * scale);
        sum[i] += load(dy, e, i);
    }
}

/* Gradients of w and b for columns [first, end). */
INLINED void sum_weights(const struct norm *norm, int64_t first, int64_t end, enum element e)
{
    for (int64_t strip = first; strip < end; strip += STRIP) {
        int64_t count = end - strip < STRIP ? end - strip : STRIP;
        double total_u[STRIP] = {0}, total[STRIP] = {0};
        for (int64_t chunk = 0; chunk < norm->rows; chunk += CHUNK) {
            float sum_u[STRIP] = {0}, sum[STRIP] = {0};
            for (int64_t row = chunk; row < norm->rows && row < chunk + CHUNK; row++)
                add_columns(norm, row, strip, count, sum_u, sum, e);
            for (int64_t i = 0; i < count; i++) {
                total_u[i] += sum_u[i];
                total[i] += sum[i];
            }
        }
        for (int64_t i = 0; norm->dw->data && i < count; i++)
            put(norm->dw, strip + i, true, total_u[i]);
        for (int64_t i = 0; norm->db->data && i < count; i++)
            put(norm->db, strip + i, true, total[i]);
    }
}

EITHER_ELEMENT(sum_weights, norm)

static void backward_sums(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (!whole(&norm))
        parallel(norm.rows, 1, dot_rows_range, &norm);
}

static void backward_gradients(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (norm.dw->data || norm.db->data) /* first: dx may lie over dy */
        parallel(norm.hidden, 16, sum_weights_range, &norm);
    if (norm.dx)
        parallel(norm.rows, 1, whole(&norm) ? backward_rows_range : input_rows_range, &norm);
}

const struct kernel cpu_norm = {
    "norm",
    {{forward_sum, forward_squares, forward_output}, {backward_sums, backward_gradients}},
};
