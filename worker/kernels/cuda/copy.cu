/* copy.cu - copies a box from one piece of a tensor to another, with a thread per element.
 *
 * Neighbouring dims that lie together in both pieces are taken as one, since every further dim
 * costs two divisions of 64 bits per element. Most copies are of whole tensors: weights, from f32
 * to bf16. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

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

} // namespace

void cuda_copy(const struct view *destination, const struct view *source, const struct box *part)
{
    assert(destination->box.dims == part->dims && source->box.dims == part->dims);
    struct route route = {};
    route.dims = part->dims;
    for (int i = 0; i < part->dims; i++)
        route.length[i] = box_length(part, i);
    route.from_first = strides(&source->box, part, route.from);
    route.to_first = strides(&destination->box, part, route.to);
    simplify(&route);
    with_element(source->element, [&](auto from) {
        with_element(destination->element, [&](auto to) {
            launch_elements("copy", copy<decltype(from), decltype(to)>, box_count(part), route,
                            (const decltype(from) *)source->data, (decltype(to) *)destination->data,
                            box_count(part));
        });
    });
}
