/* rmsnorm.c - y = x r w, r = 1 / sqrt(mean of x^2 + epsilon): Zhang and Sennrich, arXiv 1910.07467.
 *
 * Statistics are sums over the piece of h that is here; between two phases they become the sums
 * over all of h. */
#include "worker/kernels/plain/plain.h"

#include <math.h>

enum { X, W, Y, SQUARES, DOT = 3 };

/* Rows of x, and the piece of h that is here. */
struct rows {
    int64_t count, width;
};

static struct rows rows_of(const struct kernel_call *call)
{
    return (struct rows){call_rows(&call->operand[X].box), box_length(&call->operand[X].box, 2)};
}

/* r of a row, once its squares are whole. */
static double scale(const struct kernel_call *call, int64_t row)
{
    const float *squares = call->operand[SQUARES].data;
    return 1 / sqrt(squares[row] / (double)sizes_get(&call->sizes, 'h') + call->node->epsilon);
}

static void forward_squares(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    const float *x = call->operand[X].data;
    float *squares = call->operand[SQUARES].data;
    for (int64_t row = 0; row < rows.count; row++) {
        double sum = 0;
        for (int64_t i = 0; i < rows.width; i++)
            sum += (double)x[row * rows.width + i] * x[row * rows.width + i];
        squares[row] = (float)sum;
    }
}

static void forward_output(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    const float *x = call->operand[X].data, *w = call->operand[W].data;
    float *y = call->operand[Y].data;
    for (int64_t row = 0; row < rows.count; row++) {
        double r = scale(call, row);
        for (int64_t i = 0; i < rows.width; i++)
            y[row * rows.width + i] = (float)(x[row * rows.width + i] * r * w[i]);
    }
}

static void backward_dot(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    const float *x = call->operand[X].data, *w = call->operand[W].data;
    const float *dy = call->gradient[Y].data;
    float *dot = call->gradient[DOT].data;
    for (int64_t row = 0; row < rows.count; row++) {
        double sum = 0;
        for (int64_t i = 0; i < rows.width; i++)
            sum += (double)dy[row * rows.width + i] * w[i] * x[row * rows.width + i];
        dot[row] = (float)sum;
    }
}

/* dw = sum of dy x r */
static void backward_weight(const struct kernel_call *call, struct rows rows)
{
    const float *x = call->operand[X].data, *dy = call->gradient[Y].data;
    float *dw = call->gradient[W].data;
    for (int64_t i = 0; i < rows.width; i++) {
        double sum = 0;
        for (int64_t row = 0; row < rows.count; row++)
            sum += (double)dy[row * rows.width + i] * x[row * rows.width + i] * scale(call, row);
        put(&dw[i], true, sum);
    }
}

/* dx = r (dy w - x r^2 dot / width) */
static void backward_input(const struct kernel_call *call, struct rows rows)
{
    double width = (double)sizes_get(&call->sizes, 'h');
    const float *x = call->operand[X].data, *w = call->operand[W].data;
    const float *dy = call->gradient[Y].data, *dot = call->gradient[DOT].data;
    float *dx = call->gradient[X].data;
    for (int64_t row = 0; row < rows.count; row++) {
        double r = scale(call, row);
        for (int64_t i = 0; i < rows.width; i++) {
            int64_t at = row * rows.width + i;
            put(&dx[at], call_accumulates(call, X),
                r * ((double)dy[at] * w[i] - x[at] * r * r * dot[row] / width));
        }
    }
}

static void backward_gradients(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    /* The weight's first: the gradient of x may lie where that of y does. */
    if (call->gradient[W].data)
        backward_weight(call, rows);
    if (call->gradient[X].data)
        backward_input(call, rows);
}

const struct kernel plain_rmsnorm = {
    "rmsnorm", {{forward_squares, forward_output}, {backward_dot, backward_gradients}}};
