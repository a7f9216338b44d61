/* operation.c - measures one operation of the table, on random operands. */
#include "bench/kernels/measure.h"
#include "bench/kernels/parts.h"
#include "tests/support/kinds.h"

#include "common/base/memory.h"
#include "common/base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    const struct kernel *kernel;
    struct kernel_call call;
    struct node node;
    enum direction direction;
    void *workspace;
};

static void run_phases(void *context)
{
    struct job *job = context;
    int phases = job->node.operation->phases[job->direction];
    for (job->call.phase = 0; job->call.phase < phases; job->call.phase++)
        job->kernel->run[job->direction][job->call.phase](&job->call);
}

static struct view make_view(const char *dims, const struct sizes *sizes, enum element element,
                             int slot)
{
    struct view view = {.box = box_along(dims, sizes), .element = element};
    view.data = measure_draw((size_t)box_count(&view.box), element, (uint64_t)slot);
    return view;
}

static struct view make_tokens(const char *dims, const struct sizes *sizes)
{
    struct view view = {.box = box_along(dims, sizes)};
    size_t count = (size_t)box_count(&view.box);
    int32_t *tokens = xcalloc(count, sizeof *tokens);
    for (size_t i = 0; i < count; i++)
        tokens[i] = (int32_t)random_below(1, 0, i, (uint64_t)sizes_get(sizes, 'v'));
    view.data = tokens;
    return view;
}

static void job_init(struct job *job, const struct device *device, const char *name,
                     const struct sizes *given, enum element element)
{
    *job = (struct job){.node = kind_sized(kind_find(name), given)};
    const struct node *node = &job->node;
    const struct operation *operation = node->operation;
    const struct sizes *sizes = &node->sizes;
    int operands = operation_operands(operation);
    struct box boxes[OPERANDS_MAX];
    char space[DIMS_MAX + 1];
    job->kernel = device_kernel(device, operation);
    job->call = (struct kernel_call){.node = node, .element = element, .once = true};
    job->call.targets = (double)(sizes_get(sizes, 'b') * sizes_get(sizes, 's'));
    for (int i = 0; i < operands; i++) {
        bool constant = !node_differentiates(node, i);
        bool weight = i >= operation->input_count && i < operation_output(operation);
        bool loss = operation->is_loss && i == operation_output(operation);
        job->call.operand[i] =
            constant ? make_tokens(node->dims[i], sizes)
                     : make_view(node->dims[i], sizes, loss ? ELEMENT_F32 : element, i);
        boxes[i] = job->call.operand[i].box;
        /* What merely passes costs nothing: the program gives it no memory. */
        if (!constant && !(operation->passes >> i & 1))
            job->call.gradient[i] =
                make_view(node->dims[i], sizes, weight ? ELEMENT_F32 : element, i);
    }
    for (int i = 0; i < operation->statistic_count[FORWARD]; i++)
        job->call.operand[operands + i] =
            make_view(slot_dims(node, false, operands + i, space), sizes, ELEMENT_F32, 0);
    for (int i = 0; i < operation->statistic_count[BACKWARD]; i++)
        job->call.gradient[operands + i] =
            make_view(slot_dims(node, true, operands + i, space), sizes, ELEMENT_F32, 0);
    if (operation->workspace)
        job->call.workspace = xcalloc(1, (size_t)operation->workspace(boxes, BACKWARD));
}

static void job_finish(struct job *job)
{
    for (int i = 0; i < VIEWS_MAX; i++) {
        free(job->call.operand[i].data);
        free(job->call.gradient[i].data);
    }
    free(job->call.workspace);
}

/* Bytes that the call must read or write once. */
static double job_bytes(const struct job *job)
{
    double bytes = 0;
    for (int i = 0; i < operation_operands(job->node.operation); i++) {
        const struct view *operand = &job->call.operand[i], *gradient = &job->call.gradient[i];
        const struct operation *operation = job->node.operation;
        bool weight = i >= operation->input_count && i < operation_output(operation);
        if (operand->data && (job->direction == FORWARD || weight || operation->saved >> i & 1))
            bytes += (double)view_elements(operand) * (double)element_size(operand->element);
        if (gradient->data && job->direction == BACKWARD)
            bytes += (double)view_elements(gradient) * (double)element_size(gradient->element);
    }
    return bytes;
}

double bench_operation(const struct device *device, const char *name, const struct sizes *sizes,
                       enum element element)
{
    struct job job;
    double sum = 0;
    job_init(&job, device, name, sizes, element);
    for (int direction = FORWARD; direction < DIRECTIONS; direction++) {
        const struct operation *operation = job.node.operation;
        struct box boxes[OPERANDS_MAX];
        char line[64];
        for (int i = 0; i < operation_operands(operation); i++)
            boxes[i] = job.call.operand[i].box;
        job.direction = (enum direction)direction;
        if (direction == BACKWARD && operation->backward_flops == 0)
            continue;
        double seconds = measure_shortest(run_phases, &job);
        double flops = node_flops(&job.node, boxes, job.direction);
        bool product = strcmp(job.kernel->name, "linear") == 0 || operation->keys;
        snprintf(line, sizeof line, "%s_%s%s", name, direction == FORWARD ? "forward" : "backward",
                 element == ELEMENT_BF16 ? "_bf16" : "");
        if (product)
            measure_print(line, 1e-9 * flops / seconds, "GFLOP/s");
        else
            measure_print(line, 1e-9 * job_bytes(&job) / seconds, "GB/s");
        sum += seconds;
    }
    job_finish(&job);
    return sum;
}
