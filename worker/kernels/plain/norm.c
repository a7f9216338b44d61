/* norm.c - layer normalisation: y = u w + b, u = (x - mean) / deviation.
 *
 * Ba, Kiros and Hinton, arXiv 1607.06450. Root-mean-square normalisation is the same without b and
 * with a mean of 0: Zhang and Sennrich, arXiv 1910.07467. Statistics are sums over this rank's
 * piece of x's last dim; between two phases they become sums over all of it. */
#include "worker/kernels/plain/plain.h"

#include <assert.h>
#include <math.h>

enum { X, W, B };

struct norm {
    int64_t rows, hidden;  /* hidden: width of the piece that is here */
    double width, epsilon; /* width: of the whole row */
    const struct view *x, *w, *b, *y, *dx, *dw, *db, *dy;
    float *sums, *squares, *dots_w, *dots_u;
    bool centred, add; /* add: to dx */
};

/* A norm without b (rmsnorm) has no mean, and so neither sums nor dots_w. */
static struct norm norm_of(const struct kernel_call *call)
{
    bool centred = call->node->operation->weight_count == 2;
    int y = operation_output(call->node->operation);
    int first = y + 1, last = centred ? first + 1 : first; /* indices of the statistics */
    return (struct norm){
        .rows = call_rows(&call->operand[X].box),
        .hidden = call_width(&call->operand[X].box),
        .width = (double)call_whole_width(call, X),
        .epsilon = call->node->epsilon,
        .x = &call->operand[X],
        .w = &call->operand[W],
        .b = centred ? &call->operand[B] : NULL,
        .y = &call->operand[y],
        .dx = &call->gradient[X],
        .dw = &call->gradient[W],
        .db = centred ? &call->gradient[B] : NULL,
        .dy = &call->gradient[y],
        .sums = centred ? call->operand[first].data : NULL,
        .squares = call->operand[last].data,
        .dots_w = centred ? call->gradient[first].data : NULL,
        .dots_u = call->gradient[last].data,
        .centred = centred,
        .add = call_accumulates(call, X),
    };
}

/* Valid once the sum is complete. */
static double row_mean(const struct norm *norm, int64_t row)
{
    return norm->centred ? norm->sums[row] / norm->width : 0;
}

/* Valid once the squares are complete: u = (x - mean) * scale. */
static double row_scale(const struct norm *norm, int64_t row)
{
    return 1 / sqrt(norm->squares[row] / norm->width + norm->epsilon);
}

static void forward_sum(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    assert(norm.centred);
    for (int64_t row = 0; row < norm.rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < norm.hidden; i++)
            sum += get(norm.x, row * norm.hidden + i);
        norm.sums[row] = (float)sum;
    }
}

static void forward_squares(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    for (int64_t row = 0; row < norm.rows; row++) {
        double mean = row_mean(&norm, row), sum = 0;
        for (int64_t i = 0; i < norm.hidden; i++) {
            double deviation = get(norm.x, row * norm.hidden + i) - mean;
            sum += deviation * deviation;
        }
        norm.squares[row] = (float)sum;
    }
}

static void forward_output(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    for (int64_t row = 0; row < norm.rows; row++) {
        double mean = row_mean(&norm, row), scale = row_scale(&norm, row);
        for (int64_t i = 0; i < norm.hidden; i++) {
            int64_t at = row * norm.hidden + i;
            double bias = norm.centred ? get(norm.b, i) : 0;
            put(norm.y, at, false, (get(norm.x, at) - mean) * scale * get(norm.w, i) + bias);
        }
    }
}

static void backward_dots(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    for (int64_t row = 0; row < norm.rows; row++) {
        double mean = row_mean(&norm, row), scale = row_scale(&norm, row), sum = 0, sum_u = 0;
        for (int64_t i = 0; i < norm.hidden; i++) {
            int64_t at = row * norm.hidden + i;
            double du = get(norm.dy, at) * get(norm.w, i);
            sum += du;
            sum_u += du * (get(norm.x, at) - mean) * scale;
        }
        if (norm.centred)
            norm.dots_w[row] = (float)sum;
        norm.dots_u[row] = (float)sum_u;
    }
}

/* dx = (dy w - (dot_w + u dot_u) / width) / deviation. Without a mean there is no dot_w. */
static void backward_input(const struct norm *norm)
{
    for (int64_t row = 0; row < norm->rows; row++) {
        double mean = row_mean(norm, row), scale = row_scale(norm, row);
        double dot_w = norm->centred ? norm->dots_w[row] : 0, dot_u = norm->dots_u[row];
        for (int64_t i = 0; i < norm->hidden; i++) {
            int64_t at = row * norm->hidden + i;
            double u = (get(norm->x, at) - mean) * scale;
            double du = get(norm->dy, at) * get(norm->w, i);
            put(norm->dx, at, norm->add, (du - (dot_w + u * dot_u) / norm->width) * scale);
        }
    }
}

/* dw = sum of dy u, db = sum of dy */
static void backward_weights(const struct norm *norm)
{
    for (int64_t i = 0; i < norm->hidden; i++) {
        double sum = 0, sum_u = 0;
        for (int64_t row = 0; row < norm->rows; row++) {
            int64_t at = row * norm->hidden + i;
            double given = get(norm->dy, at);
            sum += given;
            sum_u += given * (get(norm->x, at) - row_mean(norm, row)) * row_scale(norm, row);
        }
        if (norm->dw->data)
            put(norm->dw, i, true, sum_u);
        if (norm->centred && norm->db->data)
            put(norm->db, i, true, sum);
    }
}

static void backward_gradients(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    /* Weights first, because the gradient of x may share memory with that of y. */
    backward_weights(&norm);
    if (norm.dx->data)
        backward_input(&norm);
}

const struct kernel plain_norm = {
    "norm",
    {{forward_sum, forward_squares, forward_output}, {backward_dots, backward_gradients}},
};

const struct kernel plain_rmsnorm = {
    "rmsnorm",
    {{forward_squares, forward_output}, {backward_dots, backward_gradients}},
};
