/* position.c - y[b,s] = x[b,s] + w[s]. The table may hold more positions than the piece of y. */
#include "worker/kernels/plain/plain.h"

static void forward(const struct kernel_call *call)
{
    const struct box *box = &call->operand[2].box, *table = &call->operand[1].box;
    const struct view *x = &call->operand[0], *w = &call->operand[1], *y = &call->operand[2];
    int64_t seq = box_length(box, 1), hidden = box_length(box, 2);
    int64_t first = (box->low[1] - table->low[0]) * hidden;
    for (int64_t b = 0; b < box_length(box, 0); b++)
        for (int64_t i = 0; i < seq * hidden; i++)
            put(y, b * seq * hidden + i, false, get(x, b * seq * hidden + i) + get(w, first + i));
}

static void backward(const struct kernel_call *call)
{
    call_pass(call, 0);
    const struct box *box = &call->gradient[2].box, *table = &call->gradient[1].box;
    const struct view *dy = &call->gradient[2], *dw = &call->gradient[1];
    if (!dw->data)
        return;
    int64_t seq = box_length(box, 1), hidden = box_length(box, 2);
    int64_t first = (box->low[1] - table->low[0]) * hidden;
    for (int64_t i = 0; i < seq * hidden; i++) {
        double sum = 0;
        for (int64_t b = 0; b < box_length(box, 0); b++)
            sum += get(dy, b * seq * hidden + i);
        put(dw, first + i, true, sum);
    }
}

const struct kernel plain_position = {"position", {{forward}, {backward}}};
