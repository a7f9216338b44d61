/* embed.c - y[row] = w[token[row]]. Tokens of another rank's part of the vocabulary give zeros, and
 * their gradients are ignored. */
#include "worker/kernels/plain/plain.h"

/* The row of this piece of the table that belongs to a token; -1: it is elsewhere. */
static int64_t table_row(const struct box *table, int32_t token)
{
    return token >= table->low[0] && token < table->high[0] ? token - table->low[0] : -1;
}

static void forward(const struct kernel_call *call)
{
    const int32_t *tokens = call->operand[0].data;
    const struct view *w = &call->operand[1], *y = &call->operand[2];
    int64_t rows = call_rows(&call->operand[2].box), hidden = box_length(&call->operand[1].box, 1);
    for (int64_t row = 0; row < rows; row++) {
        int64_t from = table_row(&call->operand[1].box, tokens[row]);
        for (int64_t i = 0; i < hidden; i++)
            put(y, row * hidden + i, false, from < 0 ? 0 : get(w, from * hidden + i));
    }
}

static bool seen_before(const int32_t *tokens, int64_t row)
{
    for (int64_t i = 0; i < row; i++)
        if (tokens[i] == tokens[row])
            return true;
    return false;
}

static void backward(const struct kernel_call *call)
{
    const int32_t *tokens = call->operand[0].data;
    const struct view *dy = &call->gradient[2], *dw = &call->gradient[1];
    if (!dw->data)
        return;
    int64_t rows = call_rows(&dy->box), hidden = box_length(&dw->box, 1);
    for (int64_t row = 0; row < rows; row++) {
        int64_t to = table_row(&dw->box, tokens[row]);
        if (to < 0 || seen_before(tokens, row))
            continue;
        for (int64_t i = 0; i < hidden; i++) {
            double sum = 0;
            for (int64_t other = row; other < rows; other++)
                sum += tokens[other] == tokens[row] ? get(dy, other * hidden + i) : 0;
            put(dw, to * hidden + i, true, sum);
        }
    }
}

const struct kernel plain_embed = {"embed", {{forward}, {backward}}};
