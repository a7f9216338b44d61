/* operation.c - an operation, on operands of its own. */
#include "bench/kernels/measure.h"
#include "bench/kernels/parts.h"

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

static struct view make_view(const char *dims, const struct sizes *sizes, bool integer, int slot)
{
    struct view view = {.box = box_whole(dims, sizes)};
    size_t count = (size_t)box_count(&view.box);
    view.data = measure_draw(count, (uint64_t)slot);
    for (size_t i = 0; integer && i < count; i++)
        ((int32_t *)view.data)[i] = (int32_t)random_below(1, 0, i, (uint64_t)sizes_get(sizes, 'v'));
    return view;
}

static void job_init(struct job *job, const struct device *device,
                     const struct operation *operation, const struct sizes *sizes)
{
    int operands = operation_operands(operation);
    struct box boxes[OPERANDS_MAX];
    *job = (struct job){.kernel = device_kernel(device, operation),
                        .node = {.operation = operation, .epsilon = 1e-5f, .base = 10000}};
    job->call = (struct kernel_call){.node = &job->node, .sizes = *sizes, .once = true};
    job->call.targets = (double)(sizes_get(sizes, 'b') * sizes_get(sizes, 's'));
    for (int i = 0; i < operands; i++) {
        bool constant = !operation_differentiates(operation, i);
        job->call.operand[i] = make_view(operation->dims[i], sizes, constant, i);
        boxes[i] = job->call.operand[i].box;
        /* What merely passes costs nothing: the program gives it no memory. */
        if (!constant && !(operation->passes >> i & 1))
            job->call.gradient[i] = make_view(operation->dims[i], sizes, false, i);
    }
    for (int i = 0; i < operation->statistic_count[FORWARD]; i++)
        job->call.operand[operands + i] =
            make_view(operation->statistics[FORWARD][i].dims, sizes, false, 0);
    for (int i = 0; i < operation->statistic_count[BACKWARD]; i++)
        job->call.gradient[operands + i] =
            make_view(operation->statistics[BACKWARD][i].dims, sizes, false, 0);
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
    int64_t count = 0;
    for (int i = 0; i < operation_operands(job->node.operation); i++) {
        const struct view *operand = &job->call.operand[i], *gradient = &job->call.gradient[i];
        bool output = i == operation_output(job->node.operation);
        if (operand->data && (job->direction == FORWARD || !output))
            count += box_count(&operand->box);
        if (gradient->data && job->direction == BACKWARD)
            count += box_count(&gradient->box);
    }
    return (double)count * sizeof(float);
}

double bench_operation(const struct device *device, const char *name, const struct sizes *sizes)
{
    struct job job;
    double sum = 0;
    job_init(&job, device, operation_find(name), sizes);
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
        double flops = operation->flops(operation, boxes) *
                       (direction == FORWARD ? 1 : operation->backward_flops);
        bool product = strcmp(job.kernel->name, "linear") == 0 || strcmp(name, "core") == 0;
        snprintf(line, sizeof line, "%s_%s", name, direction == FORWARD ? "forward" : "backward");
        if (product)
            measure_print(line, 1e-9 * flops / seconds, "GFLOP/s");
        else
            measure_print(line, 1e-9 * job_bytes(&job) / seconds, "GB/s");
        sum += seconds;
    }
    job_finish(&job);
    return sum;
}
