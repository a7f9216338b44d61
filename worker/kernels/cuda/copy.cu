/* copy.cu - copies a box from one piece of a tensor to another, with a thread per element.
 *
 * Neighbouring dims that lie together in both pieces are taken as one, since every further dim
 * costs two divisions of 64 bits per element. Most copies are of whole tensors: weights, from f32
 * to bf16. */
#include "worker/kernels/cuda/chunks.h"
#include "worker/kernels/cuda/cuda.h"

#include <cassert>

namespace
{

/* The lengths of the part that is copied; and for each of the two pieces its strides, and the
 * offset at which the part begins. In elements. */
struct route {
    int dims;
    int64_t length[DIMS_MAX], from[DIMS_MAX], to[DIMS_MAX];
    int64_t from_first, to_first;
};

/* Fill in the strides of the piece; returns the offset of the part in it. */
int64_t strides(const struct box *box, const struct box *part, int64_t *stride)
{
    int64_t first = 0, apart = 1;
    for (int i = box->dims - 1; i >= 0; i--) {
        stride[i] = apart;
        first += (part->low[i] - box->low[i]) * apart;
        apart *= box_length(box, i);
    }
    return first;
}

/* Merge each dim with the next one where, in both pieces, it is as far apart as the next one is
 * long; and leave out dims of length 1. */
void simplify(struct route *route)
{
    int dims = 0;
    for (int i = 0; i < route->dims; i++) {
        int last = dims - 1;
        if (route->length[i] == 1)
            continue;
        bool joined = last >= 0 && route->from[last] == route->from[i] * route->length[i] &&
                      route->to[last] == route->to[i] * route->length[i];
        int at = joined ? last : dims++;
        route->length[at] = route->length[i] * (joined ? route->length[at] : 1);
        route->from[at] = route->from[i];
        route->to[at] = route->to[i];
    }
    route->dims = dims;
}

template <typename From, typename To>
__global__ void copy(struct route route, const From *source, To *destination, int64_t count)
{
    for (int64_t i = element_first(); i < count; i += element_step()) {
        int64_t rest = i, from = route.from_first, to = route.to_first;
        for (int dim = route.dims - 1; dim > 0; dim--) {
            int64_t place = rest % route.length[dim];
            rest /= route.length[dim];
            from += place * route.from[dim];
            to += place * route.to[dim];
        }
        from += rest * route.from[0];
        to += rest * route.to[0];
        set_at(&destination[to], wide(source[from]));
    }
}

/* ---- many whole arrays ---- */

#define ARRAYS_MAX 64

template <typename From, typename To> struct array {
    const From *source;
    To *destination;
    int64_t count, chunks_end; /* chunks_end: chunks of all arrays up to and with this one */
};

template <typename From, typename To> struct arrays {
    struct array<From, To> of[ARRAYS_MAX];
    int count;
};

template <typename From, typename To> __global__ void copy_whole(struct arrays<From, To> arrays)
{
    each_chunk(arrays.of, arrays.of[arrays.count - 1].chunks_end,
               [](const struct array<From, To> &array, int64_t i) {
                   set_at(&array.destination[i], wide(array.source[i]));
               });
}

struct route route_of(const struct view *destination, const struct view *source,
                      const struct box *part)
{
    struct route route = {};
    assert(destination->box.dims == part->dims && source->box.dims == part->dims);
    route.dims = part->dims;
    for (int i = 0; i < part->dims; i++)
        route.length[i] = box_length(part, i);
    route.from_first = strides(&source->box, part, route.from);
    route.to_first = strides(&destination->box, part, route.to);
    simplify(&route);
    return route;
}

/* Whether what is copied lies together in both pieces. */
bool is_together(const struct route *route)
{
    return route->dims == 0 || (route->dims == 1 && route->from[0] == 1 && route->to[0] == 1);
}

/* Take calls until the arrays are full or one has other elements, or does not lie together; returns
 * how many were consumed. */
template <typename From, typename To>
int fill(struct arrays<From, To> *arrays, const struct copy_call *calls, int count)
{
    int i = 0;
    int64_t chunks = 0;
    for (; i < count && arrays->count < ARRAYS_MAX; i++) {
        const struct view *from = &calls[i].source, *to = &calls[i].destination;
        const struct route route = route_of(to, from, &calls[i].part);
        const int64_t elements = box_count(&calls[i].part);
        if (from->element != calls->source.element || to->element != calls->destination.element ||
            !is_together(&route))
            break;
        chunks += chunks_of(elements);
        if (elements > 0)
            arrays->of[arrays->count++] = {(const From *)from->data + route.from_first,
                                           (To *)to->data + route.to_first, elements, chunks};
    }
    return i;
}

} // namespace

void cuda_copy(const struct view *destination, const struct view *source, const struct box *part)
{
    const struct route route = route_of(destination, source, part);
    with_element(source->element, [&](auto from) {
        with_element(destination->element, [&](auto to) {
            launch_elements("copy", copy<decltype(from), decltype(to)>, box_count(part), route,
                            (const decltype(from) *)source->data, (decltype(to) *)destination->data,
                            box_count(part));
        });
    });
}

void cuda_copy_all(const struct copy_call *calls, int count)
{
    for (int taken; count > 0; calls += taken, count -= taken) {
        with_element(calls->source.element, [&](auto from) {
            with_element(calls->destination.element, [&](auto to) {
                struct arrays<decltype(from), decltype(to)> arrays = {
                };
                taken = fill(&arrays, calls, count);
                if (arrays.count > 0)
                    launch_blocks("copy", copy_whole<decltype(from), decltype(to)>,
                                  dim3(blocks_of(arrays.of[arrays.count - 1].chunks_end, 1)),
                                  arrays);
            });
        });
        if (taken > 0)
            continue;
        cuda_copy(&calls->destination, &calls->source, &calls->part);
        taken = 1;
    }
}
