/* array.cu - operations on whole arrays: clear, add, reduce, and gradients that pass through an
 * operation unchanged. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

#include <cassert>

namespace
{

template <typename To, typename From>
__global__ void add(To *destination, const From *source, int64_t count)
{
    each_element_ahead(
        count, [=](int64_t i) { return wide(destination[i]) + wide(source[i]); },
        [=](int64_t i, float sum) { set_at(&destination[i], sum); });
}

template <typename E> struct reduced {
    const E *of[REDUCE_MAX];
    int count;
    bool largest;
};

template <typename E>
__global__ void reduce(struct reduced<E> reduced, E *destination, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step()) {
        float result = wide(reduced.of[0][i]);
        for (int source = 1; source < reduced.count; source++) {
            float other = wide(reduced.of[source][i]);
            if (!reduced.largest)
                result += other;
            else if (other > result || other != other)
                result = other;
        }
        set_at(&destination[i], result);
    }
}

} // namespace

void cuda_clear(void *data, size_t bytes)
{
    if (bytes > 0)
        stream_note(cudaMemsetAsync(data, 0, bytes, stream_here()->cuda), "clear");
}

void cuda_sum(const struct view *destination, const struct view *source)
{
    int64_t count = box_count(&source->box);
    with_element(destination->element, [&](auto to) {
        with_element(source->element, [&](auto from) {
            launch_elements("add", add<decltype(to), decltype(from)>, count,
                            (decltype(to) *)destination->data, (const decltype(from) *)source->data,
                            count);
        });
    });
}

void cuda_reduce(enum element element, void *destination, const void *const *sources, int count,
                 uint64_t elements, bool largest)
{
    assert(count <= REDUCE_MAX);
    with_element(element, [&](auto number) {
        using E = decltype(number);
        struct reduced<E> reduced = {
        };
        reduced.count = count;
        reduced.largest = largest;
        for (int i = 0; i < count; i++)
            reduced.of[i] = (const E *)sources[i];
        launch_elements("reduce", reduce<E>, (int64_t)elements, reduced, (E *)destination,
                        (int64_t)elements);
    });
}

void cuda_pass(const struct kernel_call *call, int i)
{
    const struct view *from = &call->gradient[operation_output(call->node->operation)];
    const struct view *to = &call->gradient[i];
    size_t bytes = (size_t)box_count(&from->box) * element_size(from->element);
    if (!to->data || to->data == from->data || bytes == 0)
        return;
    if (call_accumulates(call, i))
        cuda_sum(to, from);
    else
        stream_note(cudaMemcpyAsync(to->data, from->data, bytes, cudaMemcpyDeviceToDevice,
                                    stream_here()->cuda),
                    "pass");
}
