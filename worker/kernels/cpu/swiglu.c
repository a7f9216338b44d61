/* swiglu.c - y = x s(x) z, s(x) = 1 / (1 + exp(-x)). */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/exponential.h"
#include "worker/kernels/cpu/numbers.h"

#define GRAIN 1024

enum { X, Z, Y };

struct gate {
    enum element element;
    const void *x, *z, *dy;
    void *y, *dx, *dz; /* dx and dz: NULL where not wanted */
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

/* dz = dy x s */
INLINED void backward_z(const struct gate *gate, int64_t first, int64_t end, enum element e,
                        bool add)
{
    const void *x = gate->x, *dy = gate->dy;
    void *dz = gate->dz;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        float u = load(x, e, i), before = add ? load(dz, e, i) : 0;
        store(dz, e, i, before + load(dy, e, i) * u * sigmoid(u));
    }
}

/* dx = dy z s (1 + x (1 - s)) */
INLINED void backward_x(const struct gate *gate, int64_t first, int64_t end, enum element e,
                        bool add)
{
    const void *x = gate->x, *z = gate->z, *dy = gate->dy;
    void *dx = gate->dx;
#pragma omp simd
    for (int64_t i = first; i < end; i++) {
        float u = load(x, e, i), s = sigmoid(u), before = add ? load(dx, e, i) : 0;
        store(dx, e, i, before + load(dy, e, i) * load(z, e, i) * s * (1 + u * (1 - s)));
    }
}

/* A piece of both while it is in the cache; that of x last, since it may lie over dy. */
INLINED void backward_both(const struct gate *gate, int64_t first, int64_t end, enum element e)
{
    for (int64_t at = first; at < end; at += GRAIN) {
        int64_t to = end - at < GRAIN ? end : at + GRAIN;
        if (gate->dz && gate->add_z)
            backward_z(gate, at, to, e, true);
        else if (gate->dz)
            backward_z(gate, at, to, e, false);
        if (gate->dx && gate->add_x)
            backward_x(gate, at, to, e, true);
        else if (gate->dx)
            backward_x(gate, at, to, e, false);
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
