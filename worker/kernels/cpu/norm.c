/* norm.c - layer normalisation, row by row.
 *
 * Where all of h is here, the last phase of each direction does everything while a row is in
 * the first cache, and those before it nothing. Statistics are as in plain/norm.c. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/parallel.h"

#include <math.h>

#define STRIP 256 /* columns whose sums are kept at once */
#define CHUNK 128 /* rows summed in f32 before they join a sum in double */

enum { X, W, B, Y, SUM, SQUARES };
enum { DOT_W = 4, DOT_U };

struct norm {
    int64_t rows, hidden;
    float width, epsilon; /* width: of the whole h */
    const float *x, *w, *b, *dy;
    float *sum, *squares, *dot_w, *dot_u;
    float *y, *dx, *dw, *db;
    bool add;
};

static struct norm norm_of(const struct kernel_call *call)
{
    return (struct norm){
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
        .dw = call->gradient[W].data,
        .db = call->gradient[B].data,
        .add = call_accumulates(call, X),
    };
}

static bool whole(const struct norm *norm)
{
    return norm->hidden == (int64_t)norm->width;
}

static inline __attribute__((always_inline)) float row_scale(const struct norm *norm, int64_t row)
{
    return 1 / sqrtf(norm->squares[row] / norm->width + norm->epsilon);
}

static inline __attribute__((always_inline)) void row_sum(const struct norm *norm, int64_t row)
{
    const float *x = norm->x + row * norm->hidden;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < norm->hidden; i++)
        sum += x[i];
    norm->sum[row] = sum;
}

static inline __attribute__((always_inline)) void row_squares(const struct norm *norm, int64_t row)
{
    const float *x = norm->x + row * norm->hidden;
    float mean = norm->sum[row] / norm->width, sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < norm->hidden; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    norm->squares[row] = sum;
}

static inline __attribute__((always_inline)) void row_output(const struct norm *norm, int64_t row)
{
    const float *x = norm->x + row * norm->hidden, *w = norm->w, *b = norm->b;
    float *y = norm->y + row * norm->hidden;
    float mean = norm->sum[row] / norm->width, scale = row_scale(norm, row);
#pragma omp simd
    for (int64_t i = 0; i < norm->hidden; i++)
        y[i] = (x[i] - mean) * scale * w[i] + b[i];
}

VECTORISED static void sum_range(const void *context, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++)
        row_sum(context, row);
}

VECTORISED static void squares_range(const void *context, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++)
        row_squares(context, row);
}

VECTORISED static void output_range(const void *context, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++)
        row_output(context, row);
}

VECTORISED static void forward_range(const void *context, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++) {
        row_sum(context, row);
        row_squares(context, row);
        row_output(context, row);
    }
}

static void forward_sum(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (!whole(&norm))
        parallel(norm.rows, 1, sum_range, &norm);
}

static void forward_squares(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (!whole(&norm))
        parallel(norm.rows, 1, squares_range, &norm);
}

static void forward_output(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    parallel(norm.rows, 1, whole(&norm) ? forward_range : output_range, &norm);
}

static inline __attribute__((always_inline)) void row_dots(const struct norm *norm, int64_t row)
{
    const float *x = norm->x + row * norm->hidden, *dy = norm->dy + row * norm->hidden;
    const float *w = norm->w;
    float mean = norm->sum[row] / norm->width, dot_w = 0, dot_x = 0;
#pragma omp simd reduction(+ : dot_w, dot_x)
    for (int64_t i = 0; i < norm->hidden; i++) {
        float du = dy[i] * w[i];
        dot_w += du;
        dot_x += du * (x[i] - mean);
    }
    norm->dot_w[row] = dot_w;
    norm->dot_u[row] = dot_x * row_scale(norm, row);
}

/* dx = (dy w - (dot_w + u dot_u) / width) / deviation. May write over dy. */
static inline __attribute__((always_inline)) void row_input(const struct norm *norm, int64_t row)
{
    const float *x = norm->x + row * norm->hidden, *dy = norm->dy + row * norm->hidden;
    const float *w = norm->w;
    float *dx = norm->dx + row * norm->hidden;
    float mean = norm->sum[row] / norm->width, scale = row_scale(norm, row);
    float constant = norm->dot_w[row] / norm->width;
    float slope = norm->dot_u[row] / norm->width * scale;
    if (norm->add) {
#pragma omp simd
        for (int64_t i = 0; i < norm->hidden; i++)
            dx[i] += (dy[i] * w[i] - constant - (x[i] - mean) * slope) * scale;
    } else {
#pragma omp simd
        for (int64_t i = 0; i < norm->hidden; i++)
            dx[i] = (dy[i] * w[i] - constant - (x[i] - mean) * slope) * scale;
    }
}

VECTORISED static void dots_range(const void *context, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++)
        row_dots(context, row);
}

VECTORISED static void input_range(const void *context, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++)
        row_input(context, row);
}

VECTORISED static void backward_range(const void *context, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++) {
        row_dots(context, row);
        row_input(context, row);
    }
}

/* Over the rows of a chunk: columns of dy u, and of dy. */
static inline __attribute__((always_inline)) void add_columns(const struct norm *norm, int64_t row,
                                                              int64_t first, int64_t count,
                                                              float *sum_u, float *sum)
{
    const float *x = norm->x + row * norm->hidden + first;
    const float *dy = norm->dy + row * norm->hidden + first;
    float mean = norm->sum[row] / norm->width, scale = row_scale(norm, row);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        sum_u[i] += dy[i] * ((x[i] - mean) * scale);
        sum[i] += dy[i];
    }
}

/* Gradients of w and b for columns [first, end). */
VECTORISED static void weights_range(const void *context, int64_t first, int64_t end)
{
    const struct norm *norm = context;
    for (int64_t strip = first; strip < end; strip += STRIP) {
        int64_t count = end - strip < STRIP ? end - strip : STRIP;
        double total_u[STRIP] = {0}, total[STRIP] = {0};
        for (int64_t chunk = 0; chunk < norm->rows; chunk += CHUNK) {
            float sum_u[STRIP] = {0}, sum[STRIP] = {0};
            for (int64_t row = chunk; row < norm->rows && row < chunk + CHUNK; row++)
                add_columns(norm, row, strip, count, sum_u, sum);
            for (int64_t i = 0; i < count; i++) {
                total_u[i] += sum_u[i];
                total[i] += sum[i];
            }
        }
        for (int64_t i = 0; norm->dw && i < count; i++)
            norm->dw[strip + i] += (float)total_u[i];
        for (int64_t i = 0; norm->db && i < count; i++)
            norm->db[strip + i] += (float)total[i];
    }
}

static void backward_sums(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (!whole(&norm))
        parallel(norm.rows, 1, dots_range, &norm);
}

static void backward_gradients(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    if (norm.dw || norm.db) /* first: dx may lie over dy */
        parallel(norm.hidden, 16, weights_range, &norm);
    if (norm.dx)
        parallel(norm.rows, 1, whole(&norm) ? backward_range : input_range, &norm);
}

const struct kernel cpu_norm = {
    "norm",
    {{forward_sum, forward_squares, forward_output}, {backward_sums, backward_gradients}},
};
