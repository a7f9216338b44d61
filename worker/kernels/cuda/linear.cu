/* linear.cu - y = x w + bias, for every operation that is a matrix product. */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/product.h"

namespace
{

template <typename E> __global__ void add_bias(E *y, const E *bias, int64_t columns, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step())
        put_at(&y[i], true, wide(bias[i % columns]));
}

/* An operation with two weights has a bias. Where several ranks hold partial sums of y, only one of
 * them adds it. */
template <typename E> void forward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    const void *x = call->operand[0].data, *w = call->operand[1].data;
    E *y = (E *)call->operand[operation_output(operation)].data;
    const E *bias = (const E *)call->operand[2].data;
    const struct shape shape = {.a_turned = m.transposed,
                                .rows = m.columns,
                                .inner = m.inner,
                                .columns = m.rows,
                                .a_apart = m.transposed ? m.inner : m.columns,
                                .b_apart = m.inner,
                                .from = call->element,
                                .to = call->element};
    bool biased = operation->weight_count > 1 && call->once;
    if (biased && product_multiply_biased(shape, w, x, bias, y))
        return;
    product_multiply(shape, w, x, y, false);
    if (biased)
        launch_elements("bias", add_bias<E>, m.rows * m.columns, y, bias, m.columns,
                        m.rows * m.columns);
}

/* dx = dy w' */
void backward_input(const struct kernel_call *call, const struct matmul *m, const void *dy)
{
    product_multiply({.a_turned = !m->transposed,
                      .rows = m->inner,
                      .inner = m->columns,
                      .columns = m->rows,
                      .a_apart = m->transposed ? m->inner : m->columns,
                      .b_apart = m->columns,
                      .from = call->element,
                      .to = call->element},
                     call->operand[1].data, dy, call->gradient[0].data, call_accumulates(call, 0));
}

/* dw += x' dy, or its transpose */
void backward_weight(const struct kernel_call *call, const struct matmul *m, const void *dy)
{
    const void *x = call->operand[0].data;
    const struct view *dw = &call->gradient[1];
    const struct shape shape = {.b_turned = true,
                                .rows = m->transposed ? m->inner : m->columns,
                                .inner = m->rows,
                                .columns = m->transposed ? m->columns : m->inner,
                                .a_apart = m->transposed ? m->inner : m->columns,
                                .b_apart = m->transposed ? m->columns : m->inner,
                                .from = call->element,
                                .to = dw->element};
    product_multiply(shape, m->transposed ? x : dy, m->transposed ? dy : x, dw->data, true);
}

/* For columns_sum(): dbias += the sum of dy over rows. */
template <typename E> struct given {
    const E *dy;
    int64_t columns;
    template <int N> __device__ numbers<N> at(int64_t row, int64_t column) const
    {
        return numbers_at<N>(&dy[row * columns + column]);
    }
};

template <typename E> void backward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    const E *dy = (const E *)call->gradient[operation_output(operation)].data;
    const struct view *dbias = &call->gradient[2];
    if (call->gradient[0].data)
        backward_input(call, &m, dy);
    if (call->gradient[1].data)
        backward_weight(call, &m, dy);
    if (operation->weight_count > 1 && dbias->data)
        columns_sum("bias backward", given<E>{dy, m.columns}, packs(m.columns, {dy}), m.rows,
                    m.columns, dbias);
}

} // namespace

const struct kernel cuda_linear = {"linear", {{EITHER(forward)}, {EITHER(backward)}}};
