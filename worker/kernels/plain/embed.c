/* embed.c - y[row] = w[token[row]]; tokens of another rank's vocabulary give zeros. */
#include "worker/kernels/plain/plain.h"

/* The row of the piece of the table that holds the token; -1: it lies elsewhere. */
static int64_t table_row(const struct box *table, int32_t token)
{
    return token >= table->low[0] && token < table->high[0] ? token - table->low[0] : -1;
}

static void forward(const struct kernel_call *call)
{
    const int32_t *tokens = call->operand[0].data;
    const float *w = call->operand[1].data;
    float *y = call->operand[2].data;
    int64_t rows = call_rows(&call->operand[2].box), hidden = box_length(&call->operand[1].box, 1);
    for (int64_t row = 0; row < rows; row++) {
        int64_t from = table_row(&call->operand[1].box, tokens[row]);
        for (int64_t i = 0; i < hidden; i++)
            y[row * hidden + i] = from < 0 ? 0 : w[from * hidden + i];
    }
}

static void backward(const struct kernel_call *call)
{
    const int32_t *tokens = call->operand[0].data;
    const float *dy = call->gradient[2].data;
    float *dw = call->gradient[1].data;
    if (!dw)
        return;
    int64_t rows = call_rows(&call->gradient[2].box),
            hidden = box_length(&call->gradient[1].box, 1);
    for (int64_t row = 0; row < rows; row++) {
        int64_t to = table_row(&call->gradient[1].box, tokens[row]);
        for (int64_t i = 0; to >= 0 && i < hidden; i++)
            dw[to * hidden + i] += dy[row * hidden + i];
    }
}

const struct kernel plain_embed = {"embed", {{forward}, {backward}}};
