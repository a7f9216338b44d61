/* flash.cc - a plan per shape and direction, made at its first use: that step is not like the
 * others.
 *
 * Backward keeps a matrix of scores of every head, so that its sums have an order: it takes as many
 * samples at once as fit into a workspace, which all layers share. That is beside the program's
 * reservation; where there is no memory for it, the call is not taken. */
#include "worker/kernels/cuda/flash.h"

#include "worker/kernels/cuda/lane.h"
#include "worker/kernels/cuda/sdpa.h"

extern "C" {
#include "common/base/log.h"
}

#include <cmath>
#include <cstring>

#define SCORES_BYTES (INT64_C(256) << 20)

enum { Q, K, V, Y, SUMS };

struct prepared {
    prepared *next;
    struct sdpa_shape shape; /* of so many samples at once */
    enum direction direction;
    bool good; /* else there is no plan for it */
    struct backend_plan plan;
};

struct flash {
    cudnnHandle_t handle; /* NULL: there is no cuDNN */
    prepared *plans;
    void *workspace;
    int64_t workspace_bytes;
};

namespace
{

struct flash *flash_here(void)
{
    lane *lane = lane_here();
    struct error err = {};
    if (lane->flash)
        return lane->flash;
    lane->flash = new struct flash();
    if (backend_open(&lane->flash->handle, lane->stream, &err) < 0)
        log_line(LOG_INFO, "attention in bf16 is by own kernels: %s", err.text);
    return lane->flash;
}

struct sdpa_shape shape_of(const struct kernel_call *call)
{
    const struct box *q = &call->operand[Q].box, *k = &call->operand[K].box;
    int64_t group = q->dims > k->dims ? box_length(q, 3) : 1, heads = box_length(k, 2);
    return {box_length(q, 0), box_length(q, 1), heads * group, heads, box_length(q, q->dims - 1)};
}

bool aligned(const struct view *view)
{
    return (uintptr_t)view->data % 16 == 0;
}

bool takes(const struct kernel_call *call, const struct sdpa_shape *shape)
{
    const struct box *q = &call->operand[Q].box, *k = &call->operand[K].box;
    for (int i = Q; i <= SUMS; i++)
        if (!aligned(&call->operand[i]))
            return false;
    return call->element == ELEMENT_BF16 && strcmp(call->node->operation->name, "attend") != 0 &&
           q->low[1] == k->low[1] && q->high[1] == k->high[1] && shape->batch > 0 &&
           shape->seq > 1 && shape->heads > 0 && shape->width % 8 == 0;
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

/* The most samples at once that divide the batch and whose scores fit; sequences are rounded up to
 * the kernel's blocks. */
int64_t samples_of(const struct sdpa_shape *s)
{
    int64_t seq = (s->seq + 127) / 128 * 128;
    int64_t samples = SCORES_BYTES / (s->heads * seq * seq * 2);
    samples = samples < 1 ? 1 : samples < s->batch ? samples : s->batch;
    while (s->batch % samples)
        samples--;
    return samples;
}

bool has_workspace(struct flash *flash, int64_t bytes)
{
    if (bytes <= flash->workspace_bytes)
        return true;
    cudaFree(flash->workspace);
    flash->workspace = NULL;
    flash->workspace_bytes = 0;
    if (cudaMalloc(&flash->workspace, (size_t)bytes) != cudaSuccess) {
        (void)cudaGetLastError(); /* a failed reservation leaves the device well */
        return false;
    }
    flash->workspace_bytes = bytes;
    return true;
}

prepared *prepare(struct flash *flash, const struct sdpa_shape *shape, enum direction direction)
{
    prepared *made = new prepared();
    struct error err = {};
    made->shape = *shape;
    made->direction = direction;
    made->next = flash->plans;
    flash->plans = made;
    struct backend_graph graph = direction == FORWARD ? sdpa_forward(shape) : sdpa_backward(shape);
    if (plan_make(&graph, flash->handle, &made->plan, &err) < 0)
        log_line(LOG_WARN, "attention in bf16 is by own kernels: %s", err.text);
    else
        made->good = true;
    return made;
}

/* NULL: it cannot be run here. */
const struct backend_plan *find_plan(struct flash *flash, const struct sdpa_shape *shape,
                                     enum direction direction)
{
    prepared *found = flash->plans;
    while (found &&
           (found->direction != direction || memcmp(&found->shape, shape, sizeof *shape) != 0))
        found = found->next;
    if (!found)
        found = prepare(flash, shape, direction);
    bool runs = found->good && has_workspace(flash, found->plan.workspace_bytes);
    return runs ? &found->plan : NULL;
}

/* What a plan is run on: where each tensor begins, and how far its samples lie apart. */
struct memory {
    int64_t ids[SDPA_TENSORS];
    char *begin[SDPA_TENSORS];
    int64_t sample_bytes[SDPA_TENSORS];
    int count;
};

void add(struct memory *memory, enum sdpa_tensor id, const void *begin, int64_t sample_bytes)
{
    memory->ids[memory->count] = id;
    memory->begin[memory->count] = (char *)begin;
    memory->sample_bytes[memory->count++] = sample_bytes;
}

/* From one sample to the next one. */
int64_t apart(const struct view *view)
{
    return box_count(&view->box) / box_length(&view->box, 0) * (int64_t)element_size(view->element);
}

void add_view(struct memory *memory, enum sdpa_tensor id, const struct view *view)
{
    add(memory, id, view->data, apart(view));
}

void add_inputs(struct memory *memory, const struct kernel_call *call)
{
    add_view(memory, SDPA_Q, &call->operand[Q]);
    add_view(memory, SDPA_K, &call->operand[K]);
    add_view(memory, SDPA_V, &call->operand[V]);
    add_view(memory, SDPA_Y, &call->operand[Y]);
    add_view(memory, SDPA_SUMS, &call->operand[SUMS]);
}

void run(struct flash *flash, const struct backend_plan *plan, const struct memory *memory,
         int64_t parts, int64_t samples, const char *what)
{
    for (int64_t part = 0; part < parts; part++) {
        void *places[SDPA_TENSORS];
        for (int i = 0; i < memory->count; i++)
            places[i] = memory->begin[i] + part * samples * memory->sample_bytes[i];
        if (plan_run(plan, flash->handle, memory->count, memory->ids, places, flash->workspace) !=
            CUDNN_STATUS_SUCCESS) {
            cudaError_t cause = cudaPeekAtLastError();
            lane_note(cause != cudaSuccess ? cause : cudaErrorUnknown, what);
        }
    }
}

} // namespace

bool flash_forward(const struct kernel_call *call)
{
    struct sdpa_shape shape = shape_of(call);
    if (!takes(call, &shape))
        return false;
    struct flash *flash = flash_here();
    const struct backend_plan *plan = flash->handle ? find_plan(flash, &shape, FORWARD) : NULL;
    if (!plan)
        return false;
    float scale = 1 / sqrtf((float)shape.width), nothing = -INFINITY;
    struct memory memory = {};
    add_inputs(&memory, call);
    add(&memory, SDPA_SCALE, &scale, 0);
    add(&memory, SDPA_NOTHING, &nothing, 0);
    run(flash, plan, &memory, 1, shape.batch, "attention");
    return true;
}

bool flash_backward(const struct kernel_call *call)
{
    struct sdpa_shape shape = shape_of(call);
    if (!takes(call, &shape) || !takes_gradients(call))
        return false;
    struct flash *flash = flash_here();
    int64_t batch = shape.batch;
    shape.batch = samples_of(&shape);
    const struct backend_plan *plan = flash->handle ? find_plan(flash, &shape, BACKWARD) : NULL;
    if (!plan)
        return false;
    float scale = 1 / sqrtf((float)shape.width), nothing = -INFINITY, one = 1;
    struct memory memory = {};
    add_inputs(&memory, call);
    add_view(&memory, SDPA_DY, &call->gradient[Y]);
    add_view(&memory, SDPA_DQ, &call->gradient[Q]);
    add_view(&memory, SDPA_DK, &call->gradient[K]);
    add_view(&memory, SDPA_DV, &call->gradient[V]);
    add(&memory, SDPA_SCALE, &scale, 0);
    add(&memory, SDPA_NOTHING, &nothing, 0);
    add(&memory, SDPA_ONE, &one, 0);
    run(flash, plan, &memory, batch / shape.batch, shape.batch, "attention backward");
    return true;
}

void flash_close(struct flash *flash)
{
    if (!flash)
        return;
    while (flash->plans) {
        prepared *next = flash->plans->next;
        if (flash->plans->good)
            plan_finish(&flash->plans->plan);
        delete flash->plans;
        flash->plans = next;
    }
    cudaFree(flash->workspace);
    backend_close(flash->handle);
    delete flash;
}
