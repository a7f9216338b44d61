/* swiglu.c - y = x s(x) z with s(x) = 1 / (1 + exp(-x)). */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/exponential.h"
#include "worker/kernels/cpu/numbers.h"

#define GRAIN 1024
#define BLOCK 256 /* numbers whose gradients are computed before any is written */

enum { X, Z, Y };

struct gate {
    enum element element;
    const void *x, *z, *dy;
    void *y, *dx, *dz; /* dx, dz: NULL if not wanted */
    bool add_x, add_z;
};

INLINED float sigmoid(float x)
{
    return 1 / (1 + exponential(-x));
}

INLINED void forward_each(const struct gate *gate, int64_t first, int64_t end, enum element e)
{
    const void *x = gate->x, *z = gate->z;
    void *y = gate->y;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        float u = load(x, e, i);
        store(y, e, i, u * sigmoid(u) * load(z, e, i));
    }
}

/* dx = dy z s (1 + x (1 - s)) and dz = dy x s, for `count` numbers from `first` on. */
INLINED void compute(const struct gate *gate, int64_t first, int64_t count, enum element e,
                     float *dx, float *dz)
{
    const void *x = from_number(gate->x, e, first), *z = from_number(gate->z, e, first);
    const void *dy = from_number(gate->dy, e, first);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float u = load(x, e, i), s = sigmoid(u), given = load(dy, e, i) * s;
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

INLINED void give(void *to, bool add, int64_t first, const float *from, int64_t count,
                  enum element e)
{
    if (to && add)
        add_all(from_number(to, e, first), from, count, e);
    else if (to)
        write_all(from_number(to, e, first), from, count, e);
}

/* Both gradients of a block are computed before either is written, as dx may share memory with
 * dy. */
INLINED void backward_both(const struct gate *gate, int64_t first, int64_t end, enum element e)
{
    for (int64_t at = first; at < end; at += BLOCK) {
        int64_t count = end - at < BLOCK ? end - at : BLOCK;
        float dx[BLOCK], dz[BLOCK];
        compute(gate, at, count, e, dx, dz);
        give(gate->dx, gate->add_x, at, dx, count, e);
        give(gate->dz, gate->add_z, at, dz, count, e);
    }
}

EITHER_ELEMENT(forward_each, gate)
EITHER_ELEMENT(backward_both, gate)

static void forward(const struct kernel_call *call)
{
    parallel(box_count(&call->operand[Y].box), GRAIN, forward_each_range,
             &(struct gate){.element = call->element,
                            .x = call->operand[X].data,
                            .z = call->operand[Z].data,
                            .y = call->operand[Y].data});
}

static void backward(const struct kernel_call *call)
{
    parallel(box_count(&call->gradient[Y].box), GRAIN, backward_both_range,
             &(struct gate){.element = call->element,
                            .x = call->operand[X].data,
                            .z = call->operand[Z].data,
                            .dy = call->gradient[Y].data,
                            .dx = call->gradient[X].data,
                            .dz = call->gradient[Z].data,
                            .add_x = call_accumulates(call, X),
                            .add_z = call_accumulates(call, Z)});
}

const struct kernel cpu_swiglu = {"swiglu", {{forward}, {backward}}};
