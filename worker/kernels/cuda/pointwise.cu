/* pointwise.cu - operations whose numbers depend on one number of each operand: the residual
 * stream, gates, and positions that are added. */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

#include <type_traits>

namespace
{

/* add: y = x + z. Backward, both gradients are that of y. */

template <typename E> struct add_each {
    const E *x, *z;
    template <int N> __device__ numbers<N> at(int64_t i) const
    {
        struct numbers<N> y = numbers_at<N>(&x[i]), other = numbers_at<N>(&z[i]);
        for (int k = 0; k < N; k++)
            y.of[k] += other.of[k];
        return y;
    }
};

template <typename E> void add_forward(const struct kernel_call *call)
{
    const E *x = (const E *)call->operand[0].data, *z = (const E *)call->operand[1].data;
    launch_packs("add", add_each<E>{x, z}, (E *)call->operand[2].data,
                 box_count(&call->operand[2].box), {x, z});
}

void add_backward(const struct kernel_call *call)
{
    cuda_pass(call, 0);
    cuda_pass(call, 1);
}

/* gelu: y = x/2 (1 + t), t = tanh(k (x + c x^3)): Hendrycks and Gimpel, arXiv 1606.08415. */

#define GELU_K 0.79788456080286535588f /* sqrt(2 / pi) */
#define GELU_C 0.044715f

/* For bf16 with the device's own exponential, which is off by less than the result is rounded. */
template <typename E> __device__ float gelu_tangent(float u)
{
    float inner = GELU_K * (u + GELU_C * u * u * u);
    if constexpr (std::is_same_v<E, float>)
        return tanhf(inner);
    else
        return 1 - __fdividef(2, __expf(2 * inner) + 1);
}

template <typename E> struct gelu_each {
    const E *x;
    template <int N> __device__ numbers<N> at(int64_t i) const
    {
        struct numbers<N> y = numbers_at<N>(&x[i]);
        for (int k = 0; k < N; k++)
            y.of[k] = y.of[k] / 2 * (1 + gelu_tangent<E>(y.of[k]));
        return y;
    }
};

template <typename E> struct gelu_slope {
    const E *x, *dy, *before; /* before: what it is added to, or NULL */
    template <int N> __device__ numbers<N> at(int64_t i) const
    {
        struct numbers<N> of = numbers_at<N>(&x[i]), dx = numbers_at<N>(&dy[i]), sum = {
        };
        if (before)
            sum = numbers_at<N>(&before[i]);
        for (int k = 0; k < N; k++) {
            float u = of.of[k], t = gelu_tangent<E>(u);
            float rise = (1 + t) / 2 + u / 2 * (1 - t * t) * GELU_K * (1 + 3 * GELU_C * u * u);
            sum.of[k] += dx.of[k] * rise;
        }
        return sum;
    }
};

template <typename E> void gelu_forward(const struct kernel_call *call)
{
    const E *x = (const E *)call->operand[0].data;
    launch_packs("gelu", gelu_each<E>{x}, (E *)call->operand[1].data,
                 box_count(&call->operand[1].box), {x});
}

template <typename E> void gelu_backward(const struct kernel_call *call)
{
    const E *x = (const E *)call->operand[0].data, *dy = (const E *)call->gradient[1].data;
    E *dx = (E *)call->gradient[0].data;
    if (dx)
        launch_packs("gelu backward", gelu_slope<E>{x, dy, call_accumulates(call, 0) ? dx : NULL},
                     dx, box_count(&call->gradient[1].box), {x, dy});
}

/* swiglu: y = x s(x) z, s(x) = 1 / (1 + exp(-x)): Shazeer, arXiv 2002.05202. */

enum { GATE, VALUE, GATED };

template <typename E> struct swiglu_each {
    const E *x, *z;
    template <int N> __device__ numbers<N> at(int64_t i) const
    {
        struct numbers<N> y = numbers_at<N>(&x[i]), other = numbers_at<N>(&z[i]);
        for (int k = 0; k < N; k++)
            y.of[k] *= other.of[k] / (1 + expf(-y.of[k]));
        return y;
    }
};

template <typename E> struct swiglu_gradients {
    const E *x, *z, *dy;
    E *dx, *dz; /* NULL: not wanted */
    bool add_x, add_z;
};

template <int N, typename E>
__device__ void put_numbers(E *at, bool add, const struct numbers<N> &more)
{
    struct numbers<N> sum = {
    };
    if (add)
        sum = numbers_at<N>(at);
    for (int k = 0; k < N; k++)
        sum.of[k] += more.of[k];
    numbers_set<N>(at, sum);
}

/* dx = dy z s (1 + x (1 - s)), dz = dy x s. dx may share memory with dy. */
template <int N, typename E>
__global__ void swiglu_slopes(struct swiglu_gradients<E> g, int64_t count)
{
    for (int64_t i = element_first() * N; i < count; i += element_step() * N) {
        struct numbers<N> x = numbers_at<N>(&g.x[i]), z = numbers_at<N>(&g.z[i]);
        struct numbers<N> dy = numbers_at<N>(&g.dy[i]), dx, dz;
        for (int k = 0; k < N; k++) {
            float s = 1 / (1 + expf(-x.of[k]));
            dz.of[k] = dy.of[k] * x.of[k] * s;
            dx.of[k] = dy.of[k] * z.of[k] * s * (1 + x.of[k] * (1 - s));
        }
        if (g.dz)
            put_numbers(&g.dz[i], g.add_z, dz);
        if (g.dx)
            put_numbers(&g.dx[i], g.add_x, dx);
    }
}

template <typename E> void swiglu_forward(const struct kernel_call *call)
{
    const E *x = (const E *)call->operand[GATE].data, *z = (const E *)call->operand[VALUE].data;
    launch_packs("swiglu", swiglu_each<E>{x, z}, (E *)call->operand[GATED].data,
                 box_count(&call->operand[GATED].box), {x, z});
}

template <typename E> void swiglu_backward(const struct kernel_call *call)
{
    const struct swiglu_gradients<E> g = {
        (const E *)call->operand[GATE].data, (const E *)call->operand[VALUE].data,
            (const E *)call->gradient[GATED].data, (E *)call->gradient[GATE].data,
            (E *)call->gradient[VALUE].data, call_accumulates(call, GATE),
            call_accumulates(call, VALUE),
    };
    int64_t count = box_count(&call->gradient[GATED].box);
    if (packs(count, {g.x, g.z, g.dy, g.dx, g.dz}))
        launch_elements("swiglu backward", swiglu_slopes<PACK, E>, count / PACK, g, count);
    else
        launch_elements("swiglu backward", swiglu_slopes<1, E>, count, g, count);
}

/* position: y[b,s] = x[b,s] + w[s]. The table may hold more positions than the piece of y. */

template <typename E>
__global__ void position_add(const E *x, const E *w, E *y, int64_t places, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step())
        set_at(&y[i], wide(x[i]) + wide(w[i % places]));
}

int64_t position_offset(const struct box *box, const struct box *table)
{
    return (box->low[1] - table->low[0]) * box_length(box, 2);
}

template <typename E> void position_forward(const struct kernel_call *call)
{
    const struct box *box = &call->operand[2].box;
    const E *w = (const E *)call->operand[1].data;
    w += position_offset(box, &call->operand[1].box);
    launch_elements("position", position_add<E>, box_count(box), (const E *)call->operand[0].data,
                    w, (E *)call->operand[2].data, box_length(box, 1) * box_length(box, 2),
                    box_count(box));
}

/* For columns_sum(): a column is an element of the table, a row is a sample. */
template <typename E> struct position_given {
    const E *dy;
    int64_t places;
    template <int N> __device__ numbers<N> at(int64_t row, int64_t column) const
    {
        return numbers_at<N>(&dy[row * places + column]);
    }
};

template <typename E> void position_backward(const struct kernel_call *call)
{
    /* The table comes first, because the gradient of x may share memory with that of y. */
    const struct box *box = &call->gradient[2].box;
    int64_t places = box_length(box, 1) * box_length(box, 2);
    const struct view *dw = &call->gradient[1];
    const E *dy = (const E *)call->gradient[2].data;
    if (dw->data && places > 0)
        columns_sum("position backward", position_given<E>{dy, places}, packs(places, {dy}),
                    box_length(box, 0), places, dw, position_offset(box, &dw->box));
    cuda_pass(call, 0);
}

} // namespace

const struct kernel cuda_add = {"add", {{EITHER(add_forward)}, {add_backward}}};

const struct kernel cuda_gelu = {"gelu", {{EITHER(gelu_forward)}, {EITHER(gelu_backward)}}};

const struct kernel cuda_swiglu = {"swiglu", {{EITHER(swiglu_forward)}, {EITHER(swiglu_backward)}}};

const struct kernel cuda_position = {"position",
                                     {{EITHER(position_forward)}, {EITHER(position_backward)}}};
