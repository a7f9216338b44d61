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
    E *y = (E *)call->operand[operation_output(operation)].data;
    product_multiply({m.transposed, false, m.columns, m.inner, m.rows,
                      m.transposed ? m.inner : m.columns, m.inner, call->element, call->element, 0},
                     call->operand[1].data, call->operand[0].data, y, false);
    if (operation->weight_count > 1 && call->once)
        launch_elements("bias", add_bias<E>, m.rows * m.columns, y,
                        (const E *)call->operand[2].data, m.columns, m.rows * m.columns);
}

/* dx = dy w' */
void backward_input(const struct kernel_call *call, const struct matmul *m, const void *dy)
{
    product_multiply({!m->transposed, false, m->inner, m->columns, m->rows,
                      m->transposed ? m->inner : m->columns, m->columns, call->element,
                      call->element, 0},
                     call->operand[1].data, dy, call->gradient[0].data, call_accumulates(call, 0));
}

/* dw += x' dy, or its transpose */
void backward_weight(const struct kernel_call *call, const struct matmul *m, const void *dy)
{
    const void *x = call->operand[0].data;
    const struct view *dw = &call->gradient[1];
    if (m->transposed)
        product_multiply({false, true, m->inner, m->rows, m->columns, m->inner, m->columns,
                          call->element, dw->element, 0},
                         x, dy, dw->data, true);
    else
        product_multiply({false, true, m->columns, m->rows, m->inner, m->columns, m->inner,
                          call->element, dw->element, 0},
                         dy, x, dw->data, true);
}

/* For columns_sum(): dbias += the sum of dy over rows. */
template <typename E> struct given {
    const E *dy;
    int64_t columns;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        return wide(dy[row * columns + column]);
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
        columns_sum("bias backward", given<E>{dy, m.columns}, m.rows, m.columns, dbias);
}

} // namespace

const struct kernel cuda_linear = {"linear", {{EITHER(forward)}, {EITHER(backward)}}};
