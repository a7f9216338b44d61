/* linear.c - matrix products by a library; the bias by our own loops.
 *
 * All operands lie so that rows, inner and columns are one run each: call_matmul(). */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/cpu/sgemm.h"

#define STRIP 512 /* columns whose sums are kept at once */
#define CHUNK 128 /* rows summed in f32 before they join a sum in double */

struct bias {
    int64_t rows, columns;
    const float *source;
    float *destination;
};

VECTORISED static void add_bias(const void *context, int64_t first, int64_t end)
{
    const struct bias *bias = context;
    for (int64_t row = first; row < end; row++) {
        float *y = bias->destination + row * bias->columns;
#pragma omp simd
        for (int64_t i = 0; i < bias->columns; i++)
            y[i] += bias->source[i];
    }
}

/* The sums of columns [first, end) of dy. */
VECTORISED static void sum_columns(const void *context, int64_t first, int64_t end)
{
    const struct bias *bias = context;
    for (int64_t strip = first; strip < end; strip += STRIP) {
        int64_t width = end - strip < STRIP ? end - strip : STRIP;
        double total[STRIP] = {0};
        for (int64_t chunk = 0; chunk < bias->rows; chunk += CHUNK) {
            int64_t last = chunk + CHUNK < bias->rows ? chunk + CHUNK : bias->rows;
            float sum[STRIP] = {0};
            for (int64_t row = chunk; row < last; row++) {
                const float *dy = bias->source + row * bias->columns + strip;
#pragma omp simd
                for (int64_t i = 0; i < width; i++)
                    sum[i] += dy[i];
            }
            for (int64_t i = 0; i < width; i++)
                total[i] += sum[i];
        }
        for (int64_t i = 0; i < width; i++)
            bias->destination[strip + i] += (float)total[i];
    }
}

static struct matrix weight_matrix(const struct kernel_call *call, const struct matmul *m)
{
    return (struct matrix){call->operand[1].data, m->transposed ? m->inner : m->columns,
                           m->transposed};
}

static void forward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    float *y = call->operand[operation_output(operation)].data;
    struct matrix x = {call->operand[0].data, m.inner, 0};
    sgemm(m.rows, m.columns, m.inner, 1, x, weight_matrix(call, &m), 0, y, m.columns);
    if (operation->weight_count > 1 && call->once)
        parallel(m.rows, 1, add_bias, &(struct bias){m.rows, m.columns, call->operand[2].data, y});
}

static void backward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    const float *x = call->operand[0].data;
    const float *dy = call->gradient[operation_output(operation)].data;
    float *dx = call->gradient[0].data, *dw = call->gradient[1].data;
    if (dx) {
        struct matrix w = weight_matrix(call, &m);
        w.transposed = !w.transposed;
        sgemm(m.rows, m.inner, m.columns, 1, (struct matrix){dy, m.columns, 0}, w,
              call_accumulates(call, 0) ? 1 : 0, dx, m.inner);
    }
    if (dw && m.transposed) /* dw (columns, inner) = dy' x */
        sgemm(m.columns, m.inner, m.rows, 1, (struct matrix){dy, m.columns, 1},
              (struct matrix){x, m.inner, 0}, 1, dw, m.inner);
    else if (dw) /* dw (inner, columns) = x' dy */
        sgemm(m.inner, m.columns, m.rows, 1, (struct matrix){x, m.inner, 1},
              (struct matrix){dy, m.columns, 0}, 1, dw, m.columns);
    if (operation->weight_count > 1 && call->gradient[2].data)
        parallel(m.columns, 16, sum_columns,
                 &(struct bias){m.rows, m.columns, dy, call->gradient[2].data});
}

const struct kernel cpu_linear = {"linear", {{forward}, {backward}}};
