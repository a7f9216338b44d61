/* flash.cc - attention by cuDNN, with a plan for each shape and direction. A plan is made when a
 * call is prepared; at its first use only where nobody has prepared it.
 *
 * Backward stores a matrix of scores for every head, which makes the order of its sums fixed. It is
 * therefore run in parts: as many samples at once, or heads of one sample, as fit into the stream's
 * workspace. If not even one head fits, the call is left to our own kernels. */
#include "worker/kernels/cuda/flash.h"

#include "worker/kernels/cuda/sdpa.h"
#include "worker/kernels/cuda/stream.h"

extern "C" {
#include "common/base/log.h"
}

#include <cerrno>
#include <cmath>
#include <cstring>

enum { Q, K, V, Y, SUMS };

struct prepared {
    prepared *next;
    struct sdpa_shape shape, part; /* of the whole call, and of what the plan computes at once */
    enum direction direction;
    bool good; /* false: no plan can be made */
    struct cudnn_plan plan;
};

struct flash {
    cudnnHandle_t handle; /* NULL: there is no cuDNN */
    prepared *plans;
};

namespace
{

void flash_close(void *state)
{
    struct flash *flash = (struct flash *)state;
    while (flash->plans) {
        prepared *next = flash->plans->next;
        if (flash->plans->good)
            plan_finish(&flash->plans->plan);
        delete flash->plans;
        flash->plans = next;
    }
    backend_close(flash->handle);
    delete flash;
}

/* The calling thread's stream's, opened on first use. */
struct flash *flash_here(void)
{
    device_stream *stream = stream_here();
    struct error err = {};
    struct flash *flash = (struct flash *)stream->attention.state;
    if (flash)
        return flash;
    flash = new struct flash();
    stream->attention = {flash, flash_close};
    if (backend_open(&flash->handle, stream->cuda, &err) < 0)
        log_line(LOG_INFO, "attention in bf16 is by own kernels: %s", err.text);
    return flash;
}

struct sdpa_shape shape_of(const struct kernel_call *call)
{
    const struct box *q = &call->operand[Q].box, *k = &call->operand[K].box;
    int64_t group = q->dims > k->dims ? box_length(q, 3) : 1, heads = box_length(k, 2);
    return {box_length(q, 0), box_length(q, 1), heads, group, box_length(q, q->dims - 1), heads};
}

bool aligned(const struct view *view)
{
    return (uintptr_t)view->data % 16 == 0;
}

/* cuDNN accepts smaller shapes than it was seen to compute correctly. */
constexpr int64_t width_least = 32, seq_least = 16;

bool takes(const struct kernel_call *call, const struct sdpa_shape *shape)
{
    const struct box *q = &call->operand[Q].box, *k = &call->operand[K].box;
    for (int i = Q; i <= SUMS; i++)
        if (!aligned(&call->operand[i]))
            return false;
    return call->element == ELEMENT_BF16 && call->node->operation->causal &&
           q->low[1] == k->low[1] && q->high[1] == k->high[1] && shape->batch > 0 &&
           shape->seq >= seq_least && shape->heads() > 0 && shape->width >= width_least &&
           shape->width % 8 == 0;
}

bool takes_gradients(const struct kernel_call *call)
{
    for (int i = Q; i <= Y; i++) {
        const struct view *gradient = &call->gradient[i];
        if (!gradient->data || !aligned(gradient) || (i < Y && call_accumulates(call, i)))
            return false;
    }
    return call->gradient[Q].data != call->gradient[Y].data;
}

/* Whether the sums of every part begin at a multiple of 16 bytes. */
bool is_round(const prepared *made)
{
    const struct sdpa_shape &part = made->part;
    return part.batch * part.heads() * part.seq * (int64_t)sizeof(float) % 16 == 0 ||
           memcmp(&part, &made->shape, sizeof part) == 0;
}

/* Make the plan for the part. -ENOMEM: a smaller part may fit. -ENOTSUP: no part is supported. */
int make_plan(prepared *made, cudnnHandle_t handle, int64_t bytes, struct error *err)
{
    bool forward = made->direction == FORWARD;
    int64_t wanted = forward ? 0 : sdpa_backward_bytes(&made->part);
    if (wanted <= bytes && is_round(made)) {
        struct cudnn_graph graph = forward ? sdpa_forward(&made->part) : sdpa_backward(&made->part);
        int rc = plan_make(&graph, handle, &made->plan, err);
        if (rc < 0)
            return rc;
        wanted = made->plan.workspace_bytes;
        if (wanted <= bytes)
            return 0;
        plan_finish(&made->plan);
    }
    return error_set(err, -ENOMEM,
                     "it takes %lld bytes at once for %lld heads, of which the device's libraries "
                     "have %lld",
                     (long long)wanted, (long long)made->part.heads(), (long long)bytes);
}

prepared *prepare(struct flash *flash, const struct sdpa_shape *shape, enum direction direction)
{
    prepared *made = new prepared();
    struct error err = {};
    int64_t bytes = (int64_t)stream_here()->workspace_bytes;
    made->shape = made->part = *shape;
    made->direction = direction;
    made->next = flash->plans;
    flash->plans = made;
    int rc = make_plan(made, flash->handle, bytes, &err);
    while (rc == -ENOMEM && sdpa_smaller(shape, &made->part))
        rc = make_plan(made, flash->handle, bytes, &err);
    if (rc < 0)
        log_line(LOG_WARN, "attention in bf16 is by own kernels: %s", err.text);
    made->good = rc == 0;
    return made;
}

/* NULL: none was made for this shape. */
const prepared *look_up(const struct flash *flash, const struct sdpa_shape *shape,
                        enum direction direction)
{
    const prepared *found = flash->plans;
    while (found &&
           (found->direction != direction || memcmp(&found->shape, shape, sizeof *shape) != 0))
        found = found->next;
    return found;
}

/* Find or make a plan. NULL: cuDNN cannot compute this shape. */
const prepared *find_plan(struct flash *flash, const struct sdpa_shape *shape,
                          enum direction direction)
{
    const prepared *found = look_up(flash, shape, direction);
    if (!found && flash->handle)
        found = prepare(flash, shape, direction);
    return found && found->good ? found : NULL;
}

/* The tensors that a plan is run on: for each its address, and the distances between samples, and
 * between key heads together with their query heads. */
struct memory {
    int64_t ids[SDPA_TENSORS];
    char *begin[SDPA_TENSORS];
    int64_t sample_bytes[SDPA_TENSORS], head_bytes[SDPA_TENSORS];
    int count;
};

void add(struct memory *memory, enum sdpa_tensor id, const void *begin, int64_t sample_bytes,
         int64_t head_bytes)
{
    memory->ids[memory->count] = id;
    memory->begin[memory->count] = (char *)begin;
    memory->head_bytes[memory->count] = head_bytes;
    memory->sample_bytes[memory->count++] = sample_bytes;
}

/* (batch, seq, heads, width) */
void add_vectors(struct memory *memory, enum sdpa_tensor id, const struct view *view,
                 const struct sdpa_shape &shape)
{
    int64_t bytes = box_count(&view->box) * (int64_t)element_size(view->element) / shape.batch;
    add(memory, id, view->data, bytes, bytes / shape.seq / shape.key_heads);
}

void add_number(struct memory *memory, enum sdpa_tensor id, const float *number)
{
    add(memory, id, number, 0, 0);
}

void add_inputs(struct memory *memory, const struct kernel_call *call,
                const struct sdpa_shape &shape)
{
    int64_t sums = shape.group * shape.seq * (int64_t)sizeof(float);
    add_vectors(memory, SDPA_Q, &call->operand[Q], shape);
    add_vectors(memory, SDPA_K, &call->operand[K], shape);
    add_vectors(memory, SDPA_V, &call->operand[V], shape);
    add_vectors(memory, SDPA_Y, &call->operand[Y], shape);
    add(memory, SDPA_SUMS, call->operand[SUMS].data, shape.key_heads * sums, sums);
}

void run_part(const prepared *plan, const struct memory *memory, int64_t sample, int64_t head,
              const char *what)
{
    device_stream *stream = stream_here();
    void *places[SDPA_TENSORS];
    for (int i = 0; i < memory->count; i++)
        places[i] =
            memory->begin[i] + sample * memory->sample_bytes[i] + head * memory->head_bytes[i];
    if (plan_run(&plan->plan, flash_here()->handle, memory->count, memory->ids, places,
                 stream->workspace) != CUDNN_STATUS_SUCCESS) {
        cudaError_t cause = cudaPeekAtLastError();
        stream_note(cause != cudaSuccess ? cause : cudaErrorUnknown, what);
    }
}

void run(const prepared *plan, const struct memory *memory, const char *what)
{
    for (int64_t sample = 0; sample < plan->shape.batch; sample += plan->part.batch)
        for (int64_t head = 0; head < plan->shape.key_heads; head += plan->part.key_heads)
            run_part(plan, memory, sample, head, what);
}

} // namespace

bool flash_forward(const struct kernel_call *call)
{
    struct sdpa_shape shape = shape_of(call);
    const prepared *plan = takes(call, &shape) ? find_plan(flash_here(), &shape, FORWARD) : NULL;
    if (!plan)
        return false;
    float scale = 1 / sqrtf((float)shape.width), nothing = -INFINITY;
    struct memory memory = {};
    add_inputs(&memory, call, shape);
    add_number(&memory, SDPA_SCALE, &scale);
    add_number(&memory, SDPA_NOTHING, &nothing);
    run(plan, &memory, "attention");
    return true;
}

bool flash_backward(const struct kernel_call *call)
{
    struct sdpa_shape shape = shape_of(call);
    bool takes_it = takes(call, &shape) && takes_gradients(call);
    const prepared *plan = takes_it ? find_plan(flash_here(), &shape, BACKWARD) : NULL;
    if (!plan)
        return false;
    float scale = 1 / sqrtf((float)shape.width), nothing = -INFINITY, one = 1;
    struct memory memory = {};
    add_inputs(&memory, call, shape);
    add_vectors(&memory, SDPA_DY, &call->gradient[Y], shape);
    add_vectors(&memory, SDPA_DQ, &call->gradient[Q], shape);
    add_vectors(&memory, SDPA_DK, &call->gradient[K], shape);
    add_vectors(&memory, SDPA_DV, &call->gradient[V], shape);
    add_number(&memory, SDPA_SCALE, &scale);
    add_number(&memory, SDPA_NOTHING, &nothing);
    add_number(&memory, SDPA_ONE, &one);
    run(plan, &memory, "attention backward");
    return true;
}

void flash_prepare(const struct kernel_call *call, enum direction direction)
{
    struct sdpa_shape shape = shape_of(call);
    if (!takes(call, &shape) || look_up(flash_here(), &shape, direction))
        return;
    if (direction == FORWARD)
        flash_forward(call);
    else
        flash_backward(call);
}
