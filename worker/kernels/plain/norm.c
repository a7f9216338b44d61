/* norm.c - layer normalisation: y = u w + b, u = (x - mean) / deviation.
 *
 * Ba, Kiros and Hinton, arXiv 1607.06450. Statistics are sums over the piece of h that is here;
 * between two phases they become the sums over all of h. */
#include "worker/kernels/plain/plain.h"

#include <math.h>

enum { X, W, B, Y, SUM, SQUARES };
enum { DOT_W = 4, DOT_U };

/* Once the statistics are whole: u = (x - mean) * scale. */
struct moments {
    double mean, scale;
};

static struct moments row_moments(const struct kernel_call *call, int64_t row)
{
    double width = (double)sizes_get(&call->sizes, 'h');
    const float *sums = call->operand[SUM].data, *squares = call->operand[SQUARES].data;
    return (struct moments){.mean = sums[row] / width,
                            .scale = 1 / sqrt(squares[row] / width + call->node->epsilon)};
}

static void forward_sum(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    const struct view *x = &call->operand[X];
    float *sums = call->operand[SUM].data;
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < hidden; i++)
            sum += get(x, row * hidden + i);
        sums[row] = (float)sum;
    }
}

static void forward_squares(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    double width = (double)sizes_get(&call->sizes, 'h');
    const struct view *x = &call->operand[X];
    const float *sums = call->operand[SUM].data;
    float *squares = call->operand[SQUARES].data;
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < hidden; i++) {
            double deviation = get(x, row * hidden + i) - sums[row] / width;
            sum += deviation * deviation;
        }
        squares[row] = (float)sum;
    }
}

static void forward_output(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    const struct view *x = &call->operand[X], *w = &call->operand[W], *b = &call->operand[B];
    for (int64_t row = 0; row < rows; row++) {
        struct moments m = row_moments(call, row);
        for (int64_t i = 0; i < hidden; i++)
            put(&call->operand[Y], row * hidden + i, false,
                (get(x, row * hidden + i) - m.mean) * m.scale * get(w, i) + get(b, i));
    }
}

static void backward_sums(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    const struct view *x = &call->operand[X], *w = &call->operand[W], *dy = &call->gradient[Y];
    float *dot_w = call->gradient[DOT_W].data, *dot_u = call->gradient[DOT_U].data;
    for (int64_t row = 0; row < rows; row++) {
        struct moments m = row_moments(call, row);
        double sum = 0, sum_u = 0;
        for (int64_t i = 0; i < hidden; i++) {
            double du = get(dy, row * hidden + i) * get(w, i);
            sum += du;
            sum_u += du * (get(x, row * hidden + i) - m.mean) * m.scale;
        }
        dot_w[row] = (float)sum;
        dot_u[row] = (float)sum_u;
    }
}

/* dx = (dy w - (dot_w + u dot_u) / width) / deviation */
static void backward_input(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    double width = (double)sizes_get(&call->sizes, 'h');
    const struct view *x = &call->operand[X], *w = &call->operand[W], *dy = &call->gradient[Y];
    const float *dot_w = call->gradient[DOT_W].data, *dot_u = call->gradient[DOT_U].data;
    for (int64_t row = 0; row < rows; row++) {
        struct moments m = row_moments(call, row);
        for (int64_t i = 0; i < hidden; i++) {
            double u = (get(x, row * hidden + i) - m.mean) * m.scale;
            double du = get(dy, row * hidden + i) * get(w, i);
            put(&call->gradient[X], row * hidden + i, call_accumulates(call, X),
                (du - (dot_w[row] + u * dot_u[row]) / width) * m.scale);
        }
    }
}

static void backward_weights(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    const struct view *x = &call->operand[X], *dy = &call->gradient[Y];
    const struct view *dw = &call->gradient[W], *db = &call->gradient[B];
    for (int64_t i = 0; i < hidden; i++) {
        double sum = 0, sum_u = 0;
        for (int64_t row = 0; row < rows; row++) {
            struct moments m = row_moments(call, row);
            double given = get(dy, row * hidden + i);
            sum += given;
            sum_u += given * (get(x, row * hidden + i) - m.mean) * m.scale;
        }
        if (dw->data)
            put(dw, i, true, sum_u);
        if (db->data)
            put(db, i, true, sum);
    }
}

static void backward_gradients(const struct kernel_call *call)
{
    /* The weights' first: the gradient of x may lie where that of y does. */
    backward_weights(call);
    if (call->gradient[X].data)
        backward_input(call);
}

const struct kernel plain_norm = {
    "norm",
    {{forward_sum, forward_squares, forward_output}, {backward_sums, backward_gradients}},
};
