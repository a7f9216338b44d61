/* rmsnorm.c - y = x r w, r = 1 / sqrt(mean of x^2 + epsilon): Zhang and Sennrich, arXiv 1910.07467.
 *
 * Statistics are sums over the piece of x's last dim that is here; between two phases they become
 * the sums over all of it. */
#include "worker/kernels/plain/plain.h"

#include <math.h>

enum { X, W, Y, SQUARES, DOT = 3 };

/* Rows of x, and the piece of its last dim that is here. */
struct rows {
    int64_t count, width;
};

static struct rows rows_of(const struct kernel_call *call)
{
    return (struct rows){call_rows(&call->operand[X].box), call_width(&call->operand[X].box)};
}

/* r of a row, once its squares are whole. */
static double scale(const struct kernel_call *call, int64_t row)
{
    const float *squares = call->operand[SQUARES].data;
    return 1 / sqrt(squares[row] / (double)call_whole_width(call, X) + call->node->epsilon);
}

static void forward_squares(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    const struct view *x = &call->operand[X];
    float *squares = call->operand[SQUARES].data;
    for (int64_t row = 0; row < rows.count; row++) {
        double sum = 0;
        for (int64_t i = 0; i < rows.width; i++)
            sum += get(x, row * rows.width + i) * get(x, row * rows.width + i);
        squares[row] = (float)sum;
    }
}

static void forward_output(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    const struct view *x = &call->operand[X], *w = &call->operand[W], *y = &call->operand[Y];
    for (int64_t row = 0; row < rows.count; row++) {
        double r = scale(call, row);
        for (int64_t i = 0; i < rows.width; i++)
            put(y, row * rows.width + i, false, get(x, row * rows.width + i) * r * get(w, i));
    }
}

static void backward_dot(const struct kernel_call *call)
{
    struct rows rows = rows_of(call);
    const struct view *x = &call->operand[X], *w = &call->operand[W], *dy = &call->gradient[Y];
    float *dot = call->gradient[DOT].data;
    for (int64_t row = 0; row < rows.count; row++) {
        double sum = 0;
        for (int64_t i = 0; i < rows.width; i++)
            sum += get(dy, row * rows.width + i) * get(w, i) * get(x, row * rows.width + i);
        dot[row] = (float)sum;
    }
}

/* dw = sum of dy x r */
static void backward_weight(const struct kernel_call *call, struct rows rows)
{
    const struct view *x = &call->operand[X], *dy = &call->gradient[Y];
    for (int64_t i = 0; i < rows.width; i++) {
        double sum = 0;
        for (int64_t row = 0; row < rows.count; row++)
            sum += get(dy, row * rows.width + i) * get(x, row * rows.width + i) * scale(call, row);
        put(&call->gradient[W], i, true, sum);
    }
}

/* dx = r (dy w - x r^2 dot / width) */
static void backward_input(const struct kernel_call *call, struct rows rows)
{
    double width = (double)call_whole_width(call, X);
    const struct view *x = &call->operand[X], *w = &call->operand[W], *dy = &call->gradient[Y];
    const float *dot = call->gradient[DOT].data;
    for (int64_t row = 0; row < rows.count; row++) {
        double r = scale(call, row);
        for (int64_t i = 0; i < rows.width; i++) {
            int64_t at = row * rows.width + i;
            put(&call->gradient[X], at, call_accumulates(call, X),
                r * (get(dy, at) * get(w, i) - get(x, at) * r * r * dot[row] / width));
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
