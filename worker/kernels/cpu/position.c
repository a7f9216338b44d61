/* position.c - y[b,s] = x[b,s] + w[s]; in backward, the sum over samples. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/numbers.h"

#define STRIP 1024 /* elements of the table whose sums are held at a time */

struct places {
    enum element element;
    int64_t batch, seq, hidden;
    const void *x, *w; /* backward: x is the gradient of y */
    void *y;
    const struct view *table; /* backward: the table's gradient */
    int64_t first;            /* element of the table at y's first position */
};

/* Add the table to a range of the rows (b, s). */
INLINED void forward_rows(const struct places *places, int64_t first, int64_t end, enum element e)
{
    for (int64_t row = first; row < end; row++) {
        const void *x = from_number(places->x, e, row * places->hidden);
        int64_t place = row % places->seq * places->hidden;
        const void *w = from_number(places->w, e, places->first + place);
        void *y = from_number(places->y, e, row * places->hidden);
#pragma omp simd
        for (int64_t i = 0; i < places->hidden; i++)
            store(y, e, i, load(x, e, i) + load(w, e, i));
    }
}

/* Sum a range of the table's elements (s, h) over samples. */
INLINED void sum_samples(const struct places *places, int64_t first, int64_t end, enum element e)
{
    for (int64_t strip = first; strip < end; strip += STRIP) {
        int64_t count = end - strip < STRIP ? end - strip : STRIP;
        float sum[STRIP] = {0};
        for (int64_t b = 0; b < places->batch; b++) {
            const void *dy = from_number(places->x, e, b * places->seq * places->hidden + strip);
#pragma omp simd
            for (int64_t i = 0; i < count; i++)
                sum[i] += load(dy, e, i);
        }
        for (int64_t i = 0; i < count; i++)
            put(places->table, places->first + strip + i, true, (double)sum[i]);
    }
}

EITHER_ELEMENT(forward_rows, places)
EITHER_ELEMENT(sum_samples, places)

/* The table may hold more positions than the piece of y, which begins at `first` in it. */
static struct places places_of(const struct kernel_call *call, const struct box *y,
                               const struct box *table)
{
    return (struct places){.element = call->element,
                           .batch = box_length(y, 0),
                           .seq = box_length(y, 1),
                           .hidden = box_length(y, 2),
                           .first = (y->low[1] - table->low[0]) * box_length(y, 2)};
}

static void forward(const struct kernel_call *call)
{
    struct places places = places_of(call, &call->operand[2].box, &call->operand[1].box);
    places.x = call->operand[0].data;
    places.w = call->operand[1].data;
    places.y = call->operand[2].data;
    parallel(places.batch * places.seq, 16, forward_rows_range, &places);
}

static void backward(const struct kernel_call *call)
{
    cpu_pass(call, 0);
    if (!call->gradient[1].data)
        return;
    struct places places = places_of(call, &call->gradient[2].box, &call->gradient[1].box);
    places.x = call->gradient[2].data;
    places.table = &call->gradient[1];
    parallel(places.seq * places.hidden, 1024, sum_samples_range, &places);
}

const struct kernel cpu_position = {"position", {{forward}, {backward}}};
