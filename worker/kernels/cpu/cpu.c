/* cpu.c - the CPU: vectorised loops, and matrix products by our own code or a library; f32 and
 * bf16. Here are the row, and what is the same for any array: clear, add, round and widen, squares,
 * AdamW.
 */
#include "worker/kernels/cpu/cpu.h"

#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/processor.h"
#include "worker/kernels/plain/plain.h"

#include <math.h>
#include <string.h>

#define GRAIN 4096 /* elements; fewer are not worth another thread */
#define SQUARE_PARTS                                                                               \
    64 /* of a sum; fixed, so that its bits do not depend on the number of threads */

struct arrays {
    const void *a, *b; /* out has a's element */
    void *out;
    enum element element, other; /* element: a's and out's; other: b's */
};

static void clear_range(const void *context, int64_t first, int64_t end)
{
    memset((char *)context + first, 0, (size_t)(end - first));
}

INLINED void add_each(const struct arrays *arrays, int64_t first, int64_t end, enum element element,
                      enum element other)
{
    const void *a = arrays->a, *b = arrays->b;
    void *out = arrays->out;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        store(out, element, i, load(a, element, i) + load(b, other, i));
}

INLINED void add_arrays(const struct arrays *arrays, int64_t first, int64_t end,
                        enum element element)
{
    if (arrays->other == ELEMENT_F32)
        add_each(arrays, first, end, element, ELEMENT_F32);
    else
        add_each(arrays, first, end, element, ELEMENT_BF16);
}

EITHER_ELEMENT(add_arrays, arrays)

static void cpu_clear(void *data, size_t bytes)
{
    parallel((int64_t)bytes, GRAIN * (int64_t)sizeof(float), clear_range, data);
}

void cpu_add_views(const struct view *a, const struct view *b, const struct view *out)
{
    parallel(box_count(&b->box), GRAIN, add_arrays_range,
             &(struct arrays){a->data, b->data, out->data, a->element, b->element});
}

static void cpu_sum(const struct view *destination, const struct view *source)
{
    cpu_add_views(destination, source, destination);
}

struct conversion {
    enum element element; /* of `from`; `to` has the other one */
    const void *from;
    void *to;
};

INLINED void convert(const struct conversion *conversion, int64_t first, int64_t end,
                     enum element element)
{
    const void *from = conversion->from;
    void *to = conversion->to;
    enum element other = element == ELEMENT_F32 ? ELEMENT_BF16 : ELEMENT_F32;
#pragma omp simd
    for (int64_t i = first; i < end; i++)
        store(to, other, i, load(from, element, i));
}

EITHER_ELEMENT(convert, conversion)

static void convert_run(const struct view *destination, int64_t to, const struct view *source,
                        int64_t from, int64_t count)
{
    parallel(count, GRAIN, convert_range,
             &(struct conversion){
                 .element = source->element,
                 .from = from_number(source->data, source->element, from),
                 .to = from_number(destination->data, destination->element, to),
             });
}

static void cpu_copy(const struct view *destination, const struct view *source,
                     const struct box *part)
{
    plain_copy_runs(destination, source, part,
                    destination->element == source->element ? plain_copy_run : convert_run);
}

struct squares {
    const float *data;
    int64_t count;
    double parts[SQUARE_PARTS];
};

VECTORISED static double square_run(const float *data, int64_t count)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++)
        sum += (double)data[i] * data[i];
    return sum;
}

static void square_range(const void *context, int64_t first, int64_t end)
{
    struct squares *squares = (struct squares *)context; /* each part belongs to one thread */
    for (int64_t part = first; part < end; part++) {
        int64_t from = squares->count * part / SQUARE_PARTS,
                to = squares->count * (part + 1) / SQUARE_PARTS;
        squares->parts[part] = square_run(squares->data + from, to - from);
    }
}

static void cpu_square_sum(const float *data, size_t count, float *sum)
{
    struct squares squares = {.data = data, .count = (int64_t)count};
    parallel(SQUARE_PARTS, 1, square_range, &squares);
    double whole = 0;
    for (int i = 0; i < SQUARE_PARTS; i++)
        whole += squares.parts[i];
    *sum += (float)whole;
}

void cpu_pass(const struct kernel_call *call, int i)
{
    const struct view *from = &call->gradient[operation_output(call->node->operation)];
    void *destination = call->gradient[i].data;
    size_t count = (size_t)box_count(&from->box);
    if (!destination || destination == from->data || count == 0)
        return;
    if (call_accumulates(call, i))
        cpu_sum(&call->gradient[i], from);
    else
        memcpy(destination, from->data, count * element_size(from->element));
}

/* AdamW in one pass over four arrays: 28 bytes of memory traffic per element. */
struct corrected {
    const struct update_call *call;
    float first, second; /* 1 / (1 - beta^step) */
    float scale;         /* of the gradient, for clipping */
};

VECTORISED static void update_range(const void *context, int64_t from, int64_t end)
{
    const struct corrected *corrected = context;
    const struct update_call call = *corrected->call;
    float scale1 = corrected->first, scale2 = corrected->second;
    float keep = 1 - call.rate * call.decay;
#pragma omp simd
    for (int64_t i = from; i < end; i++) {
        float gradient = call.gradient[i] * corrected->scale;
        float first = call.beta1 * call.first[i] + (1 - call.beta1) * gradient;
        float second = call.beta2 * call.second[i] + (1 - call.beta2) * gradient * gradient;
        float move = first * scale1 / (sqrtf(second * scale2) + call.epsilon);
        call.first[i] = first;
        call.second[i] = second;
        call.parameter[i] = keep * call.parameter[i] - call.rate * move;
    }
}

static void cpu_update(const struct update_call *call)
{
    struct corrected corrected = {
        .call = call,
        .first = (float)(1 / (1 - pow(call->beta1, (double)call->step))),
        .second = (float)(1 / (1 - pow(call->beta2, (double)call->step))),
    };
    if (call_update_scale(call, &corrected.scale))
        parallel((int64_t)call->count, GRAIN, update_range, &corrected);
}

static int cpu_probe(struct error *err)
{
    (void)err;
    return 0;
}

static const struct kernel *const cpu_kernels[] = {
    &cpu_add,  &cpu_attention, &cpu_embed,   &cpu_gelu,   &cpu_linear, &cpu_loss,
    &cpu_norm, &cpu_position,  &cpu_rmsnorm, &cpu_rotary, &cpu_swiglu, NULL,
};

const struct device device_cpu = {
    .name = "cpu",
    .probe = cpu_probe,
    .threads = parallel_set_threads,
    .kernels = cpu_kernels,
    .copy = cpu_copy,
    .clear = cpu_clear,
    .add = cpu_sum,
    .square_sum = cpu_square_sum,
    .update = cpu_update,
};
