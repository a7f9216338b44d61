/* call.c - the shape of a matrix product, and gradients that are passed through. */
#include "worker/kernels/call.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct matmul call_matmul(const struct kernel_call *call)
{
    const char *x = call->node->dims[0], *w = call->node->dims[1];
    const struct box *x_box = &call->operand[0].box, *w_box = &call->operand[1].box;
    struct matmul matmul = {1, 1, 1, strchr(x, w[0]) == NULL};
    for (int i = 0; i < x_box->dims; i++) {
        const char *shared = strchr(w, x[i]);
        assert(!shared || box_length(x_box, i) == box_length(w_box, (int)(shared - w)));
        *(shared ? &matmul.inner : &matmul.rows) *= box_length(x_box, i);
    }
    for (int i = 0; i < w_box->dims; i++)
        if (!strchr(x, w[i]))
            matmul.columns *= box_length(w_box, i);
    return matmul;
}

int64_t call_rows(const struct box *box)
{
    int64_t rows = 1;
    for (int i = 0; i + 1 < box->dims; i++)
        rows *= box_length(box, i);
    return rows;
}

int64_t call_width(const struct box *box)
{
    return box_length(box, box->dims - 1);
}

int64_t call_whole_width(const struct kernel_call *call, int operand)
{
    const char *dims = call->node->dims[operand];
    return sizes_get(&call->node->sizes, dims[strlen(dims) - 1]);
}

void call_pass(const struct kernel_call *call, int i)
{
    const struct view *from = &call->gradient[operation_output(call->node->operation)];
    const struct view *to = &call->gradient[i];
    if (!to->data || to->data == from->data)
        return;
    assert(box_count(&to->box) == box_count(&from->box));
    for (int64_t at = 0; at < box_count(&from->box); at++)
        put(to, at, call_accumulates(call, i), get(from, at));
}

bool call_update_scale(const struct update_call *call, float *scale)
{
    double norm = sqrt((double)*call->square_sum);
    *scale = call->clip > 0 && norm > call->clip ? (float)(call->clip / norm) : 1;
    return isfinite(*call->loss) && isfinite(norm);
}
