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

/* y = x w */
struct multiplication output_of(const struct kernel_call *call, const struct matmul *m)
{
    return {.shape = {.a_turned = m->transposed,
                      .rows = m->columns,
                      .inner = m->inner,
                      .columns = m->rows,
                      .a_apart = m->transposed ? m->inner : m->columns,
                      .b_apart = m->inner,
                      .from = call->element,
                      .to = call->element},
            .a = call->operand[1].data,
            .b = call->operand[0].data,
            .d = call->operand[operation_output(call->node->operation)].data};
}

/* An operation with two weights has a bias. Where several ranks hold partial sums of y, only one of
 * them adds it. */
struct multiplication biased(struct multiplication y, const struct kernel_call *call)
{
    bool adds = call->node->operation->weight_count > 1 && call->once;
    y.bias = adds ? call->operand[2].data : NULL;
    return y;
}

template <typename E> void linear_forward(const struct kernel_call *call)
{
    struct matmul m = call_matmul(call);
    const struct multiplication plain = output_of(call, &m), whole = biased(plain, call);
    if (product_multiply(&whole))
        return;
    product_multiply(&plain);
    launch_elements("bias", add_bias<E>, m.rows * m.columns, (E *)plain.d, (const E *)whole.bias,
                    m.columns, m.rows * m.columns);
}

/* dx = dy w' */
struct multiplication input_of(const struct kernel_call *call, const struct matmul *m)
{
    return {.shape = {.a_turned = !m->transposed,
                      .rows = m->inner,
                      .inner = m->columns,
                      .columns = m->rows,
                      .a_apart = m->transposed ? m->inner : m->columns,
                      .b_apart = m->columns,
                      .from = call->element,
                      .to = call->element},
            .a = call->operand[1].data,
            .b = call->gradient[operation_output(call->node->operation)].data,
            .d = call->gradient[0].data,
            .add = call_accumulates(call, 0)};
}

/* dw += x' dy, or its transpose */
struct multiplication weight_of(const struct kernel_call *call, const struct matmul *m)
{
    void *x = call->operand[0].data;
    void *dy = call->gradient[operation_output(call->node->operation)].data;
    const struct view *dw = &call->gradient[1];
    return {.shape = {.b_turned = true,
                      .rows = m->transposed ? m->inner : m->columns,
                      .inner = m->rows,
                      .columns = m->transposed ? m->columns : m->inner,
                      .a_apart = m->transposed ? m->inner : m->columns,
                      .b_apart = m->transposed ? m->columns : m->inner,
                      .from = call->element,
                      .to = dw->element},
            .a = m->transposed ? x : dy,
            .b = m->transposed ? dy : x,
            .d = dw->data,
            .add = true};
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

template <typename E> void bias_gradient(const struct kernel_call *call, const struct matmul *m)
{
    const E *dy = (const E *)call->gradient[operation_output(call->node->operation)].data;
    columns_sum("bias backward", given<E>{dy, m->columns}, packs(m->columns, {dy}), m->rows,
                m->columns, &call->gradient[2]);
}

/* Call each with a product that the gradients take, those that are wanted. */
template <typename Each>
void each_gradient(const struct kernel_call *call, const struct matmul *m, Each each)
{
    struct multiplication products[] = {input_of(call, m), weight_of(call, m)};
    for (const struct multiplication &product : products)
        if (product.d)
            each(&product);
}

template <typename E> void linear_backward(const struct kernel_call *call)
{
    struct matmul m = call_matmul(call);
    each_gradient(call, &m, product_multiply);
    if (call->node->operation->weight_count > 1 && call->gradient[2].data)
        bias_gradient<E>(call, &m);
}

void linear_prepare(const struct kernel_call *call, enum direction direction)
{
    struct matmul m = call_matmul(call);
    if (direction == BACKWARD) {
        each_gradient(call, &m, product_prepare);
        return;
    }
    const struct multiplication plain = output_of(call, &m), whole = biased(plain, call);
    if (!product_prepare(&whole))
        product_prepare(&plain);
}

} // namespace

const struct kernel cuda_linear = {
    "linear", {{EITHER(linear_forward)}, {EITHER(linear_backward)}}, NULL, linear_prepare};
