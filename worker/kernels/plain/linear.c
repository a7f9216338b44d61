/* linear.c - y = x w + bias, for every operation that is a matrix product. */
#include "worker/kernels/plain/plain.h"

static int64_t weight_index(const struct matmul *m, int64_t inner, int64_t column)
{
    return m->transposed ? column * m->inner + inner : inner * m->columns + column;
}

/* There is a bias if the operation has two weights. If several ranks hold parts of the sum y, only
 * one of them adds it. */
static void forward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    bool biased = operation->weight_count > 1 && call->once;
    const struct view *x = &call->operand[0], *w = &call->operand[1];
    const struct view *bias = &call->operand[2], *y = &call->operand[operation_output(operation)];
    for (int64_t row = 0; row < m.rows; row++)
        for (int64_t column = 0; column < m.columns; column++) {
            double sum = biased ? get(bias, column) : 0;
            for (int64_t i = 0; i < m.inner; i++)
                sum += get(x, row * m.inner + i) * get(w, weight_index(&m, i, column));
            put(y, row * m.columns + column, false, sum);
        }
}

/* dx = dy w' */
static void backward_input(const struct kernel_call *call, const struct matmul *m,
                           const struct view *dy)
{
    const struct view *w = &call->operand[1], *dx = &call->gradient[0];
    for (int64_t row = 0; row < m->rows; row++)
        for (int64_t i = 0; i < m->inner; i++) {
            double sum = 0;
            for (int64_t column = 0; column < m->columns; column++)
                sum += get(dy, row * m->columns + column) * get(w, weight_index(m, i, column));
            put(dx, row * m->inner + i, call_accumulates(call, 0), sum);
        }
}

/* dw += x' dy */
static void backward_weight(const struct kernel_call *call, const struct matmul *m,
                            const struct view *dy)
{
    const struct view *x = &call->operand[0], *dw = &call->gradient[1];
    for (int64_t i = 0; i < m->inner; i++)
        for (int64_t column = 0; column < m->columns; column++) {
            double sum = 0;
            for (int64_t row = 0; row < m->rows; row++)
                sum += get(x, row * m->inner + i) * get(dy, row * m->columns + column);
            put(dw, weight_index(m, i, column), true, sum);
        }
}

static void backward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    const struct view *dy = &call->gradient[operation_output(operation)];
    if (call->gradient[0].data)
        backward_input(call, &m, dy);
    if (call->gradient[1].data)
        backward_weight(call, &m, dy);
    const struct view *dbias = &call->gradient[2];
    bool biased = operation->weight_count > 1 && dbias->data;
    for (int64_t column = 0; biased && column < m.columns; column++) {
        double sum = 0;
        for (int64_t row = 0; row < m.rows; row++)
            sum += get(dy, row * m.columns + column);
        put(dbias, column, true, sum);
    }
}

const struct kernel plain_linear = {"linear", {{forward}, {backward}}};
