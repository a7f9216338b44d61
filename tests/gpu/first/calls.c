/* calls.c - a call of one operation whose operands lie on the device, and the same on the host. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/gpu/first/first.h"
#include "tests/support/kinds.h"
#include "worker/kernels/call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 256
#define FILL_BYTES ((size_t)1 << 21) /* drawn; the rest repeats them */

static struct view *view_at(struct kernel_call *call, bool gradient, int slot)
{
    return gradient ? &call->gradient[slot] : &call->operand[slot];
}

static bool is_integer(const struct operation *operation, int slot)
{
    return slot < operation->input_count && operation->constant >> slot & 1;
}

/* Weights are small, as if they were initialised: the sums of large products stay near 1. */
static void fill(const struct first_call *call, bool gradient, int slot, const struct view *view)
{
    const struct operation *operation = call->node.operation;
    uint64_t stream = (uint64_t)slot + (gradient ? 100 : 0);
    uint64_t vocab = (uint64_t)sizes_get(&call->node.sizes, 'v');
    for (int64_t i = 0; i < box_count(&view->box); i++)
        if (!gradient && is_integer(operation, slot))
            ((int32_t *)view->data)[i] = (int32_t)random_below(3, stream, (uint64_t)i, vocab);
        else if (slot_is_given(operation, gradient, slot))
            put(view, i, false, random_normal(3, stream, (uint64_t)i) / 4);
}

/* Describe a view; returns its bytes, 0 if there is none. */
static size_t describe(struct first_call *call, bool gradient, int slot, enum element element)
{
    const struct operation *operation = call->node.operation;
    int output = operation_output(operation);
    bool absent = gradient && ((slot < output && !node_differentiates(&call->node, slot)) ||
                               (slot == output && operation->is_loss));
    bool wide = slot > output || (slot == output && operation->is_loss) ||
                (!gradient && is_integer(operation, slot));
    struct view *view = view_at(&call->here, gradient, slot);
    char space[DIMS_MAX + 1];
    view->box = box_along(slot_dims(&call->node, gradient, slot, space), &call->node.sizes);
    view->element = wide ? ELEMENT_F32 : element;
    *view_at(&call->there, gradient, slot) = *view;
    return absent ? 0 : view_elements(view) * element_size(view->element);
}

/* Place every view in turn, behind what lies below `used`; returns where the last one ends. With no
 * memory, only counts. */
static size_t place(struct first_call *call, enum element element, bool empty)
{
    size_t used = 0;
    for (int gradient = 0; gradient < 2; gradient++)
        for (int slot = 0; slot < slot_count(call->node.operation, gradient); slot++) {
            size_t bytes = describe(call, gradient, slot, element);
            struct view *here = view_at(&call->here, gradient, slot);
            struct view *there = view_at(&call->there, gradient, slot);
            if (bytes == 0 || !call->memory) {
                used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
                continue;
            }
            there->data = (char *)call->memory + used;
            used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            if (empty)
                continue;
            here->data = xcalloc(1, bytes);
            fill(call, gradient, slot, here);
            call->device->accelerator->upload(there->data, here->data, bytes);
        }
    return used;
}

int first_call_open(struct first_call *call, const struct device *device, const char *kind,
                    const struct sizes *sizes, enum element element, bool empty, struct error *err)
{
    *call = (struct first_call){.device = device};
    call->node = kind_sized(kind_find(kind), sizes);
    call->node.epsilon = 1e-5f;
    call->here =
        (struct kernel_call){.node = &call->node, .element = element, .once = true, .targets = 1};
    call->there = call->here;
    call->bytes = place(call, element, empty);
    int rc = device->accelerator->reserve(call->bytes, &call->memory, err);
    if (rc < 0)
        return rc;
    device->clear(call->memory, call->bytes);
    place(call, element, empty);
    return device->accelerator->finish(err);
}

void first_call_fill(const struct first_call *call)
{
    const struct accelerator *accelerator = call->device->accelerator;
    size_t filled = call->bytes < FILL_BYTES ? call->bytes : FILL_BYTES;
    uint16_t *numbers = xcalloc(filled / 2, sizeof *numbers);
    char *memory = call->memory;
    for (size_t i = 0; i < filled / 2; i++)
        numbers[i] = bf16_narrow((float)random_normal(3, 0, i) / 4);
    accelerator->upload(memory, numbers, filled);
    for (size_t more; filled < call->bytes; filled += more) {
        more = call->bytes - filled < filled ? call->bytes - filled : filled;
        accelerator->move(memory + filled, memory, more);
    }
    free(numbers);
}

void first_call_close(struct first_call *call)
{
    for (int slot = 0; slot < VIEWS_MAX; slot++) {
        free(call->here.operand[slot].data);
        free(call->here.gradient[slot].data);
    }
    call->device->accelerator->release(call->memory);
}

void first_call_prepare(const struct first_call *call, enum direction direction)
{
    const struct kernel *kernel = device_kernel(call->device, call->node.operation);
    if (kernel->prepare)
        kernel->prepare(&call->there, direction);
}

void first_call_run(const struct first_call *call, enum direction direction)
{
    const struct kernel *kernel = device_kernel(call->device, call->node.operation);
    struct kernel_call now = call->there;
    for (now.phase = 0; now.phase < call->node.operation->phases[direction]; now.phase++)
        kernel->run[direction][now.phase](&now);
}

void first_call_plain(const struct first_call *call, enum direction direction)
{
    const struct operation *operation = call->node.operation;
    const struct kernel *kernel = device_kernel(&device_plain, operation);
    struct kernel_call now = call->here;
    struct box boxes[OPERANDS_MAX];
    for (int i = 0; i < operation_operands(operation); i++)
        boxes[i] = now.operand[i].box;
    uint64_t bytes = operation->workspace ? operation->workspace(boxes, direction) : 0;
    now.workspace = bytes > 0 ? xcalloc(1, bytes) : NULL;
    for (now.phase = 0; now.phase < operation->phases[direction]; now.phase++)
        kernel->run[direction][now.phase](&now);
    free(now.workspace);
}

int first_call_distance(const struct first_call *call, bool gradient, int slot, double *out,
                        struct error *err)
{
    const struct view *there = gradient ? &call->there.gradient[slot] : &call->there.operand[slot];
    const struct view *here = gradient ? &call->here.gradient[slot] : &call->here.operand[slot];
    size_t bytes = view_elements(there) * element_size(there->element);
    struct view got = *there;
    double square = 0, whole = 0;
    got.data = xcalloc(1, bytes);
    call->device->accelerator->download(got.data, there->data, bytes);
    int rc = call->device->accelerator->finish(err);
    for (int64_t i = 0; i < box_count(&got.box); i++) {
        double right = get(here, i), apart = get(&got, i) - right;
        square += apart * apart;
        whole += right * right;
    }
    free(got.data);
    *out = sqrt(square / whole);
    return rc;
}
