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
    const float *x = call->operand[X].data;
    float *sums = call->operand[SUM].data;
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < hidden; i++)
            sum += x[row * hidden + i];
        sums[row] = (float)sum;
    }
}

static void forward_squares(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    double width = (double)sizes_get(&call->sizes, 'h');
    const float *x = call->operand[X].data, *sums = call->operand[SUM].data;
    float *squares = call->operand[SQUARES].data;
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < hidden; i++) {
            double deviation = x[row * hidden + i] - sums[row] / width;
            sum += deviation * deviation;
        }
        squares[row] = (float)sum;
    }
}

static void forward_output(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    const float *x = call->operand[X].data, *w = call->operand[W].data, *b = call->operand[B].data;
    float *y = call->operand[Y].data;
    for (int64_t row = 0; row < rows; row++) {
        struct moments m = row_moments(call, row);
        for (int64_t i = 0; i < hidden; i++)
            y[row * hidden + i] = (float)((x[row * hidden + i] - m.mean) * m.scale * w[i] + b[i]);
    }
}

static void backward_sums(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    const float *x = call->operand[X].data, *w = call->operand[W].data;
    const float *dy = call->gradient[Y].data;
    float *dot_w = call->gradient[DOT_W].data, *dot_u = call->gradient[DOT_U].data;
    for (int64_t row = 0; row < rows; row++) {
        struct moments m = row_moments(call, row);
        double sum = 0, sum_u = 0;
        for (int64_t i = 0; i < hidden; i++) {
            double du = (double)dy[row * hidden + i] * w[i];
            sum += du;
            sum_u += du * (x[row * hidden + i] - m.mean) * m.scale;
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
    const float *x = call->operand[X].data, *w = call->operand[W].data;
    const float *dy = call->gradient[Y].data;
    const float *dot_w = call->gradient[DOT_W].data, *dot_u = call->gradient[DOT_U].data;
    float *dx = call->gradient[X].data;
    for (int64_t row = 0; row < rows; row++) {
        struct moments m = row_moments(call, row);
        for (int64_t i = 0; i < hidden; i++) {
            double u = (x[row * hidden + i] - m.mean) * m.scale;
            double du = (double)dy[row * hidden + i] * w[i];
            put(&dx[row * hidden + i], call_accumulates(call, X),
                (du - (dot_w[row] + u * dot_u[row]) / width) * m.scale);
        }
    }
}

static void backward_weights(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    const float *x = call->operand[X].data, *dy = call->gradient[Y].data;
    float *dw = call->gradient[W].data, *db = call->gradient[B].data;
    for (int64_t i = 0; i < hidden; i++) {
        double sum = 0, sum_u = 0;
        for (int64_t row = 0; row < rows; row++) {
            struct moments m = row_moments(call, row);
            sum += dy[row * hidden + i];
            sum_u += dy[row * hidden + i] * (x[row * hidden + i] - m.mean) * m.scale;
        }
        if (dw)
            put(&dw[i], true, sum_u);
        if (db)
            put(&db[i], true, sum);
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
