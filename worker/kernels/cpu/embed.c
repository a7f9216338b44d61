/* embed.c - rows of the table. Backward, every thread has columns of its own and takes the rows
 * in order: a token's sum has the same bits however many threads there are. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/parallel.h"

#include <string.h>

struct lookup {
    const int32_t *tokens;
    const struct box *table; /* (v, h) */
    const float *from;
    float *to;
    int64_t rows, hidden;
};

static void forward_range(const void *context, int64_t first, int64_t end)
{
    const struct lookup *lookup = context;
    int64_t low = lookup->table->low[0], high = lookup->table->high[0];
    size_t size = (size_t)lookup->hidden * sizeof(float);
    for (int64_t row = first; row < end; row++) {
        int64_t token = lookup->tokens[row];
        float *y = lookup->to + row * lookup->hidden;
        if (token >= low && token < high)
            memcpy(y, lookup->from + (token - low) * lookup->hidden, size);
        else
            memset(y, 0, size);
    }
}

VECTORISED static void backward_range(const void *context, int64_t first, int64_t end)
{
    const struct lookup *lookup = context;
    int64_t low = lookup->table->low[0], high = lookup->table->high[0];
    for (int64_t row = 0; row < lookup->rows; row++) {
        int64_t token = lookup->tokens[row];
        if (token < low || token >= high)
            continue;
        const float *dy = lookup->from + row * lookup->hidden;
        float *dw = lookup->to + (token - low) * lookup->hidden;
#pragma omp simd
        for (int64_t i = first; i < end; i++)
            dw[i] += dy[i];
    }
}

static void forward(const struct kernel_call *call)
{
    const struct box *table = &call->operand[1].box;
    int64_t rows = call_rows(&call->operand[2].box), hidden = box_length(table, 1);
    parallel(rows, 16, forward_range,
             &(struct lookup){call->operand[0].data, table, call->operand[1].data,
                              call->operand[2].data, rows, hidden});
}

static void backward(const struct kernel_call *call)
{
    const struct box *table = &call->gradient[1].box;
    int64_t rows = call_rows(&call->gradient[2].box), hidden = box_length(table, 1);
    if (call->gradient[1].data)
        parallel(hidden, 16, backward_range,
                 &(struct lookup){call->operand[0].data, table, call->gradient[2].data,
                                  call->gradient[1].data, rows, hidden});
}

const struct kernel cpu_embed = {"embed", {{forward}, {backward}}};
