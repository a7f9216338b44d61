/* position.c - y[b,s] = x[b,s] + w[s]: whole samples, or their sum, one place after another. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/parallel.h"

struct places {
    int64_t batch, seq, hidden;
    const float *x, *w;
    float *out;
};

/* A range of the rows (b, s). */
VECTORISED static void forward_range(const void *context, int64_t first, int64_t end)
{
    const struct places *places = context;
    for (int64_t row = first; row < end; row++) {
        const float *x = places->x + row * places->hidden;
        const float *w = places->w + row % places->seq * places->hidden;
        float *y = places->out + row * places->hidden;
#pragma omp simd
        for (int64_t i = 0; i < places->hidden; i++)
            y[i] = x[i] + w[i];
    }
}

/* A range of the elements (s, h) of the table. */
VECTORISED static void backward_range(const void *context, int64_t first, int64_t end)
{
    const struct places *places = context;
    float *dw = places->out;
    for (int64_t b = 0; b < places->batch; b++) {
        const float *dy = places->x + b * places->seq * places->hidden;
#pragma omp simd
        for (int64_t i = first; i < end; i++)
            dw[i] += dy[i];
    }
}

/* The table may hold more places than the piece of y: where it begins in the table. */
static int64_t table_offset(const struct box *y, const struct box *table)
{
    return (y->low[1] - table->low[0]) * box_length(y, 2);
}

static void forward(const struct kernel_call *call)
{
    const struct box *y = &call->operand[2].box;
    const float *w = call->operand[1].data;
    struct places places = {.batch = box_length(y, 0),
                            .seq = box_length(y, 1),
                            .hidden = box_length(y, 2),
                            .x = call->operand[0].data,
                            .w = w + table_offset(y, &call->operand[1].box),
                            .out = call->operand[2].data};
    parallel(places.batch * places.seq, 16, forward_range, &places);
}

static void backward(const struct kernel_call *call)
{
    cpu_pass(call, 0);
    const struct box *y = &call->gradient[2].box;
    float *dw = call->gradient[1].data;
    if (!dw)
        return;
    struct places places = {.batch = box_length(y, 0),
                            .seq = box_length(y, 1),
                            .hidden = box_length(y, 2),
                            .x = call->gradient[2].data,
                            .out = dw + table_offset(y, &call->gradient[1].box)};
    parallel(places.seq * places.hidden, 1024, backward_range, &places);
}

const struct kernel cpu_position = {"position", {{forward}, {backward}}};
