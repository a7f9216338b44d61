/* arrays.cu - one or many arrays in a launch: clear, add, reduce, gradients that pass through an
 * operation unchanged, copies, sums of squares, and AdamW.
 *
 * A copy goes from one piece of a tensor to another, with a thread per element. Neighbouring dims
 * that lie together in both pieces are taken as one, since every further dim costs two divisions of
 * 64 bits per element. Most copies are of whole tensors: weights, from f32 to bf16.
 *
 * Squares of many arrays are summed in two launches: a block sums a part of one array, then one
 * block adds up what belongs to each, and the arrays one after the other. How an array is divided
 * depends only on how long it is, so it does not matter which others are beside it.
 *
 * AdamW is one pass over the four arrays of a slice. The kernel reads the loss and the norm from
 * device memory, decides whether the step is finite, and scales the gradient, so the host does not
 * wait for them. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"

#include <cassert>
#include <cfloat>
#include <cmath>

namespace
{

template <typename To, typename From>
__global__ void add_arrays(To *destination, const From *source, int64_t count)
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
__global__ void reduce_arrays(struct reduced<E> reduced, E *destination, int64_t count)
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

/* ---- many arrays in one launch ---- */

#define ARRAYS_MAX 64 /* of a launch */

/* Take calls until the launch has as many arrays as it can; returns how many were consumed.
 * put(call) adds a call, unless it is empty, or returns false if it cannot be beside those before
 * it. */
template <typename Call, typename Put>
int take_calls(const Call *calls, int count, const int &arrays, Put put)
{
    int i = 0;
    while (i < count && arrays < ARRAYS_MAX && put(calls[i]))
        i++;
    return i;
}

/* Blocks take chunks of the arrays, one after the other. */
#define CHUNK (8 * THREADS) /* elements of one array that a block takes at a time */

int64_t chunks_of(int64_t count)
{
    return (count + CHUNK - 1) / CHUNK;
}

/* Call body(array, i) for each element of all arrays, which have `chunks` chunks together. Arrays
 * are structs with a count and chunks_end, the chunks of all arrays up to and with this one. */
template <typename Array, typename Body>
__device__ void each_chunk(const Array *arrays, int64_t chunks, Body body)
{
    int at = 0;
    for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        while (chunk >= arrays[at].chunks_end)
            at++;
        const Array &array = arrays[at];
        int64_t left = array.chunks_end - chunk; /* the last chunk may be shorter */
        int64_t begin = ((array.count + CHUNK - 1) / CHUNK - left) * CHUNK;
        int64_t end = begin + CHUNK < array.count ? begin + CHUNK : array.count;
        for (int64_t i = begin + threadIdx.x; i < end; i += THREADS)
            body(array, i);
    }
}

/* ---- copies ---- */

/* The lengths of the part that is copied; and for each of the two pieces its strides, and the
 * offset at which the part begins. In elements. */
struct route {
    int dims;
    int64_t length[DIMS_MAX], from[DIMS_MAX], to[DIMS_MAX];
    int64_t from_first, to_first;
};

/* Fill in the strides of the piece; returns the offset of the part in it. */
int64_t route_strides(const struct box *box, const struct box *part, int64_t *stride)
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
void route_simplify(struct route *route)
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
__global__ void copy_box(struct route route, const From *source, To *destination, int64_t count)
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

template <typename From, typename To> struct copied {
    const From *source;
    To *destination;
    int64_t count, chunks_end; /* chunks_end: chunks of all arrays up to and with this one */
};

template <typename From, typename To> struct copied_arrays {
    struct copied<From, To> of[ARRAYS_MAX];
    int count;
};

template <typename From, typename To>
__global__ void copy_whole(struct copied_arrays<From, To> arrays)
{
    each_chunk(arrays.of, arrays.of[arrays.count - 1].chunks_end,
               [](const struct copied<From, To> &array, int64_t i) {
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
    route.from_first = route_strides(&source->box, part, route.from);
    route.to_first = route_strides(&destination->box, part, route.to);
    route_simplify(&route);
    return route;
}

/* Whether what is copied lies together in both pieces. */
bool route_is_together(const struct route *route)
{
    return route->dims == 0 || (route->dims == 1 && route->from[0] == 1 && route->to[0] == 1);
}

/* Calls go together that have the same elements, and lie together in both pieces. */
template <typename From, typename To>
int copied_fill(struct copied_arrays<From, To> *arrays, const struct copy_call *calls, int count)
{
    int64_t chunks = 0;
    return take_calls(calls, count, arrays->count, [&](const struct copy_call &call) {
        const struct view *from = &call.source, *to = &call.destination;
        const struct route route = route_of(to, from, &call.part);
        const int64_t elements = box_count(&call.part);
        if (from->element != calls->source.element || to->element != calls->destination.element ||
            !route_is_together(&route))
            return false;
        chunks += chunks_of(elements);
        if (elements > 0)
            arrays->of[arrays->count++] = {(const From *)from->data + route.from_first,
                                           (To *)to->data + route.to_first, elements, chunks};
        return true;
    });
}

/* ---- squares ---- */

#define PARTS_MAX 512          /* of an array */
#define PART_MIN (8 * THREADS) /* elements */

struct squared {
    const float *data;
    int64_t count;
    int parts_end; /* parts of all arrays up to and with this one */
};

struct squared_arrays {
    struct squared of[ARRAYS_MAX];
    int count;
};

static_assert(sizeof(double) * ARRAYS_MAX * PARTS_MAX <= SCRATCH_BYTES, "where parts are left");

__host__ __device__ inline int squared_parts_begin(const struct squared_arrays &arrays, int index)
{
    return index > 0 ? arrays.of[index - 1].parts_end : 0;
}

__global__ void square_parts(struct squared_arrays arrays, double *parts)
{
    __shared__ double sums[WARPS];
    int index = 0, part = (int)blockIdx.x;
    while (part >= arrays.of[index].parts_end)
        index++;
    const struct squared &array = arrays.of[index];
    int64_t first = part - squared_parts_begin(arrays, index);
    int64_t count = array.parts_end - squared_parts_begin(arrays, index);
    int64_t low = array.count * first / count, high = array.count * (first + 1) / count;
    double sum = 0;
#pragma unroll 4
    for (int64_t i = low + threadIdx.x; i < high; i += THREADS)
        sum += (double)array.data[i] * (double)array.data[i];
    sum = warp_sum(sum);
    if (lane_of() == 0)
        sums[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < WARPS; i++)
        sum += sums[i];
    parts[part] = sum;
}

__global__ void square_add(struct squared_arrays arrays, const double *parts, float *out)
{
    __shared__ float sums[ARRAYS_MAX];
    for (int index = (int)(threadIdx.x / WARP); index < arrays.count; index += WARPS) {
        double sum = 0;
        int end = arrays.of[index].parts_end;
        for (int part = squared_parts_begin(arrays, index) + lane_of(); part < end; part += WARP)
            sum += parts[part];
        row_leave(&sums[index], (float)warp_sum(sum));
    }
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    float sum = *out;
    for (int index = 0; index < arrays.count; index++)
        sum += sums[index];
    *out = sum;
}

int squared_fill(struct squared_arrays *arrays, const struct square_call *calls, int count)
{
    int end = 0;
    return take_calls(calls, count, arrays->count, [&](const struct square_call &call) {
        int64_t parts = ((int64_t)call.count + PART_MIN - 1) / PART_MIN;
        if (parts == 0)
            return true;
        end += (int)(parts < PARTS_MAX ? parts : PARTS_MAX);
        arrays->of[arrays->count++] = {call.data, (int64_t)call.count, end};
        return true;
    });
}

/* ---- AdamW ---- */

/* What all slices of a step share. scale1, scale2: the bias corrections 1 / (1 - beta^step). */
struct update_rule {
    float rate, beta1, beta2, epsilon, clip, scale1, scale2;
    const float *loss, *square_sum;
};

struct updated {
    float *parameter, *gradient, *first, *second;
    int64_t count, chunks_end; /* chunks_end: chunks of all slices up to and with this one */
    float decay;
};

struct updated_arrays {
    struct updated of[ARRAYS_MAX];
    int64_t chunks;
};

static_assert(sizeof(struct update_rule) + sizeof(struct updated_arrays) <= 4096,
              "what a launch may be given");

__device__ bool is_finite(float x)
{
    return fabsf(x) <= FLT_MAX;
}

/* Loshchilov and Hutter, arXiv 1711.05101, algorithm 2. */
__device__ void update_element(const struct update_rule &rule, const struct updated &slice,
                               int64_t i, float scale)
{
    float keep = 1 - rule.rate * slice.decay;
    float gradient = slice.gradient[i] * scale;
    float first = rule.beta1 * slice.first[i] + (1 - rule.beta1) * gradient;
    float second = rule.beta2 * slice.second[i] + (1 - rule.beta2) * gradient * gradient;
    float move = first * rule.scale1 / (sqrtf(second * rule.scale2) + rule.epsilon);
    slice.first[i] = first;
    slice.second[i] = second;
    slice.parameter[i] = keep * slice.parameter[i] - rule.rate * move;
}

__global__ void update_arrays(struct update_rule rule, struct updated_arrays slices)
{
    float loss = *rule.loss, norm = sqrtf(*rule.square_sum);
    if (!is_finite(loss) || !is_finite(norm))
        return;
    float scale = rule.clip > 0 && norm > rule.clip ? rule.clip / norm : 1;
    each_chunk(slices.of, slices.chunks, [&](const struct updated &slice, int64_t i) {
        update_element(rule, slice, i, scale);
    });
}

struct update_rule update_rule_of(const struct update_call *call)
{
    return {
        call->rate,
        call->beta1,
        call->beta2,
        call->epsilon,
        call->clip,
        (float)(1 / (1 - pow((double)call->beta1, (double)call->step))),
        (float)(1 / (1 - pow((double)call->beta2, (double)call->step))),
        call->loss,
        call->square_sum,
    };
}

int updated_fill(struct updated_arrays *slices, const struct update_call *calls, int count)
{
    int taken = 0;
    return take_calls(calls, count, taken, [&](const struct update_call &call) {
        if (call.count == 0)
            return true;
        slices->chunks += chunks_of((int64_t)call.count);
        slices->of[taken++] = {call.parameter,      call.gradient,  call.first, call.second,
                               (int64_t)call.count, slices->chunks, call.decay};
        return true;
    });
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
            launch_elements("add", add_arrays<decltype(to), decltype(from)>, count,
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
        launch_elements("reduce", reduce_arrays<E>, (int64_t)elements, reduced, (E *)destination,
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

void cuda_copy(const struct view *destination, const struct view *source, const struct box *part)
{
    const struct route route = route_of(destination, source, part);
    with_element(source->element, [&](auto from) {
        with_element(destination->element, [&](auto to) {
            launch_elements("copy", copy_box<decltype(from), decltype(to)>, box_count(part), route,
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
                struct copied_arrays<decltype(from), decltype(to)> arrays = {
                };
                taken = copied_fill(&arrays, calls, count);
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

void cuda_square_sum_all(const struct square_call *calls, int count, float *sum)
{
    double *parts = (double *)(void *)stream_here()->scratch;
    for (int done = 0; done < count;) {
        struct squared_arrays arrays = {};
        done += squared_fill(&arrays, calls + done, count - done);
        if (arrays.count == 0)
            continue;
        launch_blocks("square_sum", square_parts,
                      dim3((unsigned)arrays.of[arrays.count - 1].parts_end), arrays, parts);
        launch_blocks("square_sum", square_add, dim3(1), arrays, parts, sum);
    }
}

void cuda_square_sum(const float *data, size_t count, float *sum)
{
    const struct square_call call = {data, count};
    cuda_square_sum_all(&call, 1, sum);
}

void cuda_update_all(const struct update_call *calls, int count)
{
    struct update_rule rule = count > 0 ? update_rule_of(calls) : (struct update_rule){};
    for (int done = 0; done < count;) {
        struct updated_arrays slices = {};
        done += updated_fill(&slices, calls + done, count - done);
        launch_blocks("update", update_arrays, dim3(blocks_of(slices.chunks, 1)), rule, slices);
    }
}

void cuda_update(const struct update_call *call)
{
    cuda_update_all(call, 1);
}
