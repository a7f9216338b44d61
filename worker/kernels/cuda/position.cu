/* position.cu - y[b,s] = x[b,s] + w[s]. The table may hold more positions than the piece of y. */
#include "worker/kernels/cuda/columns.h"
#include "worker/kernels/cuda/cuda.h"

namespace
{

template <typename E>
__global__ void add(const E *x, const E *w, E *y, int64_t places, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step())
        set_at(&y[i], wide(x[i]) + wide(w[i % places]));
}

int64_t table_offset(const struct box *box, const struct box *table)
{
    return (box->low[1] - table->low[0]) * box_length(box, 2);
}

template <typename E> void forward(const struct kernel_call *call)
{
    const struct box *box = &call->operand[2].box;
    const E *w = (const E *)call->operand[1].data;
    w += table_offset(box, &call->operand[1].box);
    launch_elements("position", add<E>, box_count(box), (const E *)call->operand[0].data, w,
                    (E *)call->operand[2].data, box_length(box, 1) * box_length(box, 2),
                    box_count(box));
}

/* For columns_sum(): a column is an element of the table, a row is a sample. */
template <typename E> struct given {
    const E *dy;
    int64_t places;
    template <int N> __device__ numbers<N> at(int64_t row, int64_t column) const
    {
        return numbers_at<N>(&dy[row * places + column]);
    }
};

template <typename E> void backward(const struct kernel_call *call)
{
    /* The table comes first, because the gradient of x may share memory with that of y. */
    const struct box *box = &call->gradient[2].box;
    int64_t places = box_length(box, 1) * box_length(box, 2);
    const struct view *dw = &call->gradient[1];
    const E *dy = (const E *)call->gradient[2].data;
    if (dw->data && places > 0)
        columns_sum("position backward", given<E>{dy, places}, packs(places, {dy}),
                    box_length(box, 0), places, dw, table_offset(box, &dw->box));
    cuda_pass(call, 0);
}

} // namespace

const struct kernel cuda_position = {"position", {{EITHER(forward)}, {EITHER(backward)}}};
