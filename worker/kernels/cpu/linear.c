/* linear.c - matrix products by product_run(); the gradient of a bias by our own loops.
 *
 * In memory, rows, inner and columns of every operand are one contiguous run of dims each:
 * call_matmul(). */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/product.h"

#define STRIP 512 /* columns whose sums are held at a time */
#define CHUNK 128 /* rows summed in f32 before the sum is added to one in double */

struct bias {
    enum element element; /* of dy */
    int64_t rows, columns;
    const void *dy;
    const struct view *destination;
};

/* Sum columns [first, end) of dy over all rows. */
INLINED void sum_columns(const struct bias *bias, int64_t first, int64_t end, enum element e)
{
    for (int64_t strip = first; strip < end; strip += STRIP) {
        int64_t width = end - strip < STRIP ? end - strip : STRIP;
        double total[STRIP] = {0};
        for (int64_t chunk = 0; chunk < bias->rows; chunk += CHUNK) {
            int64_t last = chunk + CHUNK < bias->rows ? chunk + CHUNK : bias->rows;
            float sum[STRIP] = {0};
            for (int64_t row = chunk; row < last; row++) {
                const void *dy = from_number(bias->dy, e, row * bias->columns + strip);
#pragma omp simd
                for (int64_t i = 0; i < width; i++)
                    sum[i] += load(dy, e, i);
            }
            for (int64_t i = 0; i < width; i++)
                total[i] += sum[i];
        }
        for (int64_t i = 0; i < width; i++)
            put(bias->destination, strip + i, true, total[i]);
    }
}

EITHER_ELEMENT(sum_columns, bias)

static struct matrix linear_weight(const struct kernel_call *call, const struct matmul *m)
{
    return (struct matrix){call->operand[1].data, m->transposed ? m->inner : m->columns,
                           m->transposed};
}

static void linear_forward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    product_run(&(struct product){
        .rows = m.rows,
        .columns = m.columns,
        .inner = m.inner,
        .element = call->element,
        .a = {call->operand[0].data, m.inner, false},
        .b = linear_weight(call, &m),
        .bias = operation->weight_count > 1 && call->once ? call->operand[2].data : NULL,
        .c = call->operand[operation_output(operation)].data,
        .stride = m.columns,
        .result = call->element,
    });
}

/* dx = dy w' */
static void linear_backward_input(const struct kernel_call *call, const struct matmul *m,
                                  const void *dy)
{
    struct matrix w = linear_weight(call, m);
    w.transposed = !w.transposed;
    product_run(&(struct product){
        .rows = m->rows,
        .columns = m->inner,
        .inner = m->columns,
        .element = call->element,
        .a = {dy, m->columns, false},
        .b = w,
        .add = call_accumulates(call, 0),
        .c = call->gradient[0].data,
        .stride = m->inner,
        .result = call->element,
    });
}

/* dw (inner, columns) = x' dy, or (columns, inner) = dy' x. */
static void linear_backward_weight(const struct kernel_call *call, const struct matmul *m,
                                   const void *dy)
{
    struct matrix x = {call->operand[0].data, m->inner, false}, y = {dy, m->columns, false};
    struct product product = {
        .rows = m->transposed ? m->columns : m->inner,
        .columns = m->transposed ? m->inner : m->columns,
        .inner = m->rows,
        .element = call->element,
        .a = m->transposed ? y : x,
        .b = m->transposed ? x : y,
        .add = true,
        .c = call->gradient[1].data,
        .result = call->gradient[1].element,
    };
    product.a.transposed = true;
    product.stride = product.columns;
    product_run(&product);
}

static void linear_backward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    const void *dy = call->gradient[operation_output(operation)].data;
    if (call->gradient[0].data)
        linear_backward_input(call, &m, dy);
    if (call->gradient[1].data)
        linear_backward_weight(call, &m, dy);
    if (operation->weight_count > 1 && call->gradient[2].data)
        parallel(m.columns, 16, sum_columns_range,
                 &(struct bias){call->element, m.rows, m.columns, dy, &call->gradient[2]});
}

const struct kernel cpu_linear = {"linear", {{linear_forward}, {linear_backward}}};
