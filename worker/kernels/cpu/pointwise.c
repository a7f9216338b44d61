/* pointwise.c - operations whose numbers depend on one number of each operand: the residual stream,
 * gates, and positions that are added. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/numbers.h"

#define GRAIN 1024

/* add: the residual stream: y = x + z. */
static void add_forward(const struct kernel_call *call)
{
    cpu_add_views(&call->operand[0], &call->operand[1], &call->operand[2]);
}

static void add_backward(const struct kernel_call *call)
{
    cpu_pass(call, 0);
    cpu_pass(call, 1);
}

const struct kernel cpu_add = {"add", {{add_forward}, {add_backward}}};

/* 1 / (1 + exp(-u)), given -u. Users multiply by this quotient instead of dividing themselves: GCC
 * would divide once for each use, and once more where the exponential is a constant. */
INLINED float sigmoid(float minus)
{
    return 1 / (1 + exponential(minus));
}

/* gelu: x/2 (1 + tanh(z)) = x s with s = 1 / (1 + exp(-2 z)), z = k (x + c x^3).
 *
 * Its derivative is s + x s (1 - s) 2 z'. */
#define GELU_2K 1.5957691216f /* 2 sqrt(2 / pi) */
#define GELU_C 0.044715f

struct gelu {
    enum element element;
    const void *x, *dy;
    void *out;
};

INLINED float gelu_sigmoid(float u)
{
    return sigmoid(-GELU_2K * (u + GELU_C * u * u * u));
}

INLINED void gelu_forward_each(const struct gelu *gelu, int64_t first, int64_t end, enum element e)
{
    const void *x = gelu->x;
    void *y = gelu->out;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        float u = load(x, e, i);
        store(y, e, i, u * gelu_sigmoid(u));
    }
}

INLINED float gelu_slope(float u)
{
    float s = gelu_sigmoid(u);
    return s + u * s * (1 - s) * GELU_2K * (1 + 3 * GELU_C * u * u);
}

INLINED void gelu_backward_each(const struct gelu *gelu, int64_t first, int64_t end, enum element e)
{
    const void *x = gelu->x, *dy = gelu->dy;
    void *dx = gelu->out;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        store(dx, e, i, load(dy, e, i) * gelu_slope(load(x, e, i)));
}

INLINED void gelu_backward_add(const struct gelu *gelu, int64_t first, int64_t end, enum element e)
{
    const void *x = gelu->x, *dy = gelu->dy;
    void *dx = gelu->out;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        store(dx, e, i, load(dx, e, i) + load(dy, e, i) * gelu_slope(load(x, e, i)));
}

EITHER_ELEMENT(gelu_forward_each, gelu)
EITHER_ELEMENT(gelu_backward_each, gelu)
EITHER_ELEMENT(gelu_backward_add, gelu)

static void gelu_forward(const struct kernel_call *call)
{
    parallel(box_count(&call->operand[1].box), GRAIN, gelu_forward_each_range,
             &(struct gelu){.element = call->element,
                            .x = call->operand[0].data,
                            .out = call->operand[1].data});
}

static void gelu_backward(const struct kernel_call *call)
{
    if (call->gradient[0].data)
        parallel(box_count(&call->gradient[1].box), GRAIN,
                 call_accumulates(call, 0) ? gelu_backward_add_range : gelu_backward_each_range,
                 &(struct gelu){call->element, call->operand[0].data, call->gradient[1].data,
                                call->gradient[0].data});
}

const struct kernel cpu_gelu = {"gelu", {{gelu_forward}, {gelu_backward}}};

/* swiglu: y = x s(x) z with s(x) = 1 / (1 + exp(-x)). */
#define BLOCK 256 /* numbers whose gradients are computed before any is written */

enum { GATE, VALUE, GATED };

struct swiglu {
    enum element element;
    const void *x, *z, *dy;
    void *y, *dx, *dz; /* dx, dz: NULL if not wanted */
    bool add_x, add_z;
};

INLINED void swiglu_forward_each(const struct swiglu *swiglu, int64_t first, int64_t end,
                                 enum element e)
{
    const void *x = swiglu->x, *z = swiglu->z;
    void *y = swiglu->y;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        float u = load(x, e, i);
        store(y, e, i, u * sigmoid(-u) * load(z, e, i));
    }
}

/* dx = dy z s (1 + x (1 - s)) and dz = dy x s, for `count` numbers from `first` on. */
INLINED void swiglu_compute(const struct swiglu *swiglu, int64_t first, int64_t count,
                            enum element e, float *dx, float *dz)
{
    const void *x = from_number(swiglu->x, e, first), *z = from_number(swiglu->z, e, first);
    const void *dy = from_number(swiglu->dy, e, first);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float u = load(x, e, i), s = sigmoid(-u), given = load(dy, e, i) * s;
        dx[i] = given * load(z, e, i) * (1 + u * (1 - s));
        dz[i] = given * u;
    }
}

INLINED void write_all(void *to, const float *from, int64_t count, enum element e)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        store(to, e, i, from[i]);
}

INLINED void add_all(void *to, const float *from, int64_t count, enum element e)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        store(to, e, i, load(to, e, i) + from[i]);
}

INLINED void swiglu_give(void *to, bool add, int64_t first, const float *from, int64_t count,
                         enum element e)
{
    if (to && add)
        add_all(from_number(to, e, first), from, count, e);
    else if (to)
        write_all(from_number(to, e, first), from, count, e);
}

/* Both gradients of a block are computed before either is written, as dx may share memory with
 * dy. */
INLINED void swiglu_backward_both(const struct swiglu *swiglu, int64_t first, int64_t end,
                                  enum element e)
{
    for (int64_t at = first; at < end; at += BLOCK) {
        int64_t count = end - at < BLOCK ? end - at : BLOCK;
        float dx[BLOCK], dz[BLOCK];
        swiglu_compute(swiglu, at, count, e, dx, dz);
        swiglu_give(swiglu->dx, swiglu->add_x, at, dx, count, e);
        swiglu_give(swiglu->dz, swiglu->add_z, at, dz, count, e);
    }
}

EITHER_ELEMENT(swiglu_forward_each, swiglu)
EITHER_ELEMENT(swiglu_backward_both, swiglu)

static void swiglu_forward(const struct kernel_call *call)
{
    parallel(box_count(&call->operand[GATED].box), GRAIN, swiglu_forward_each_range,
             &(struct swiglu){.element = call->element,
                              .x = call->operand[GATE].data,
                              .z = call->operand[VALUE].data,
                              .y = call->operand[GATED].data});
}

static void swiglu_backward(const struct kernel_call *call)
{
    parallel(box_count(&call->gradient[GATED].box), GRAIN, swiglu_backward_both_range,
             &(struct swiglu){.element = call->element,
                              .x = call->operand[GATE].data,
                              .z = call->operand[VALUE].data,
                              .dy = call->gradient[GATED].data,
                              .dx = call->gradient[GATE].data,
                              .dz = call->gradient[VALUE].data,
                              .add_x = call_accumulates(call, GATE),
                              .add_z = call_accumulates(call, VALUE)});
}

const struct kernel cpu_swiglu = {"swiglu", {{swiglu_forward}, {swiglu_backward}}};

/* position: y[b,s] = x[b,s] + w[s]; in backward, the sum over samples. */
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
INLINED void position_forward_rows(const struct places *places, int64_t first, int64_t end,
                                   enum element e)
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
INLINED void position_sum_samples(const struct places *places, int64_t first, int64_t end,
                                  enum element e)
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

EITHER_ELEMENT(position_forward_rows, places)
EITHER_ELEMENT(position_sum_samples, places)

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

static void position_forward(const struct kernel_call *call)
{
    struct places places = places_of(call, &call->operand[2].box, &call->operand[1].box);
    places.x = call->operand[0].data;
    places.w = call->operand[1].data;
    places.y = call->operand[2].data;
    parallel(places.batch * places.seq, 16, position_forward_rows_range, &places);
}

static void position_backward(const struct kernel_call *call)
{
    cpu_pass(call, 0);
    if (!call->gradient[1].data)
        return;
    struct places places = places_of(call, &call->gradient[2].box, &call->gradient[1].box);
    places.x = call->gradient[2].data;
    places.table = &call->gradient[1];
    parallel(places.seq * places.hidden, 1024, position_sum_samples_range, &places);
}

const struct kernel cpu_position = {"position", {{position_forward}, {position_backward}}};
