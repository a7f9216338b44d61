/* linear.cu - y = x w + bias, for every operation that is a matrix product. */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/product.h"

namespace
{

__global__ void add_bias(float *y, const float *bias, int64_t columns, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step())
        y[i] += bias[i % columns];
}

/* The bias is there when the operation has two weights, and counts on one rank only where
 * several ranks hold parts of y. */
void forward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    const float *x = (const float *)call->operand[0].data;
    const float *w = (const float *)call->operand[1].data;
    float *y = (float *)call->operand[operation_output(operation)].data;
    product_multiply({m.transposed, false, m.columns, m.inner, m.rows,
                      m.transposed ? m.inner : m.columns, m.inner, 0},
                     w, x, y, false);
    if (operation->weight_count > 1 && call->once)
        launch_elements("bias", add_bias, m.rows * m.columns, y,
                        (const float *)call->operand[2].data, m.columns, m.rows * m.columns);
}

/* dx = dy w' */
void backward_input(const struct kernel_call *call, const struct matmul *m, const float *dy)
{
    product_multiply({!m->transposed, false, m->inner, m->columns, m->rows,
                      m->transposed ? m->inner : m->columns, m->columns, 0},
                     (const float *)call->operand[1].data, dy, (float *)call->gradient[0].data,
                     call_accumulates(call, 0));
}

/* dw += x' dy, or its transpose */
void backward_weight(const struct kernel_call *call, const struct matmul *m, const float *dy)
{
    const float *x = (const float *)call->operand[0].data;
    float *dw = (float *)call->gradient[1].data;
    if (m->transposed)
        product_multiply({false, true, m->inner, m->rows, m->columns, m->inner, m->columns, 0}, x,
                         dy, dw, true);
    else
        product_multiply({false, true, m->columns, m->rows, m->inner, m->columns, m->inner, 0}, dy,
                         x, dw, true);
}

struct given {
    const float *dy;
    int64_t columns;
    __device__ float operator()(int64_t row, int64_t column) const
    {
        return dy[row * columns + column];
    }
};

void backward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    const float *dy = (const float *)call->gradient[operation_output(operation)].data;
    float *dbias = operation->weight_count > 1 ? (float *)call->gradient[2].data : NULL;
    if (call->gradient[0].data)
        backward_input(call, &m, dy);
    if (call->gradient[1].data)
        backward_weight(call, &m, dy);
    if (dbias)
        columns_sum("bias backward", given{dy, m.columns}, m.rows, m.columns, dbias);
}

} // namespace

const struct kernel cuda_linear = {"linear", {{forward}, {backward}}};
