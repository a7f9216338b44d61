/* plans.c - plans for tests: regular ones and ones drawn from a seed. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/support/engine.h"

#include <stdlib.h>
#include <string.h>

static void divide_layers(struct plan *plan)
{
    int layers = plan->block_count - 2, next = 0;
    for (int i = 0; i < plan->stage_count; i++) {
        struct plan_stage *stage = &plan->stages[i];
        int end = 1 + layers * (i + 1) / plan->stage_count;
        if (i == plan->stage_count - 1)
            end = plan->block_count;
        stage->block_first = next;
        stage->block_count = end - next;
        for (int b = next; b < end; b++)
            plan->blocks[b].stage = i;
        next = end;
    }
}

struct plan *engine_plan(const struct graph *graph, int stages, const int *axes, int axis_count,
                         const char *const *names, int micro_batches, int64_t samples,
                         const char *schedule)
{
    struct plan *plan = plan_create(stages, (int)graph->block_count);
    divide_layers(plan);
    for (int i = 0; i < stages; i++) {
        plan->stages[i].mesh.axes = axis_count;
        for (int axis = 0; axis < axis_count; axis++)
            plan->stages[i].mesh.size[axis] = axes[axis];
    }
    for (int b = 0; b < plan->block_count; b++)
        for (int axis = 0; axis < axis_count; axis++)
            plan->blocks[b].roles[axis] = role_find(names[axis]);
    plan->micro_batches = micro_batches;
    plan->micro_batch_samples = samples;
    plan->schedule = schedule_find(schedule);
    return plan;
}

struct plan *engine_plan_one(const struct graph *graph, int micro_batches, int64_t samples)
{
    return engine_plan(graph, 1, NULL, 0, NULL, micro_batches, samples, "1f1b");
}

struct draw {
    uint64_t seed, next;
};

static int below(struct draw *draw, int bound)
{
    return (int)random_below(draw->seed, 42, draw->next++, (uint64_t)bound);
}

static void draw_stages(struct draw *draw, struct plan *plan, int ranks_max)
{
    int layers = plan->block_count - 2, next = 0, ranks = ranks_max / plan->stage_count;
    for (int i = 0; i < plan->stage_count; i++) {
        struct plan_stage *stage = &plan->stages[i];
        int left = plan->stage_count - 1 - i;
        int last = plan->block_count - left; /* at least one block for each stage after this */
        int end = left == 0 ? plan->block_count : next + 1 + below(draw, layers);
        end = left > 0 && end > last ? last : end;
        stage->block_first = next;
        stage->block_count = end - next;
        for (int b = next; b < end; b++)
            plan->blocks[b].stage = i;
        next = end;

        int count = 1;
        while (stage->mesh.axes < 3) {
            int size = 2 + (below(draw, 3) == 0);
            if (count * size > ranks || below(draw, 5) == 0)
                break;
            stage->mesh.size[stage->mesh.axes++] = size;
            count *= size;
        }
        if (below(draw, 2)) {
            stage->weights = xcalloc((size_t)count, sizeof *stage->weights);
            for (int rank = 0; rank < count; rank++)
                stage->weights[rank] = 1 + below(draw, 3);
            stage->mesh.weights = stage->weights;
        }
    }
}

static void draw_roles(struct draw *draw, struct plan *plan, int block)
{
    int count = 0;
    while (roles[count])
        count++;
    plan->blocks[block].zero = below(draw, 4);
    plan->blocks[block].recompute = (enum recompute)below(draw, RECOMPUTES);
    for (int axis = 0; axis < plan->stages[plan->blocks[block].stage].mesh.axes; axis++)
        plan->blocks[block].roles[axis] = roles[below(draw, count)];
}

struct plan *engine_plan_random(const struct graph *graph, uint64_t seed, int ranks_max,
                                int64_t batch)
{
    struct draw draw = {seed, 0};
    int stages = 1 + below(&draw, 3);
    stages = stages > (int)graph->block_count - 1 ? (int)graph->block_count - 1 : stages;
    stages = stages > ranks_max ? ranks_max : stages;
    struct plan *plan = plan_create(stages, (int)graph->block_count);
    draw_stages(&draw, plan, ranks_max);
    int micro_batches = 1 + below(&draw, 4);
    while (batch % micro_batches != 0)
        micro_batches--;
    plan->micro_batches = micro_batches;
    plan->micro_batch_samples = batch / micro_batches;
    plan->schedule = schedules[below(&draw, 2)];

    /* Vectors of roles until lowering accepts the block: the plan with all others plain. */
    for (int b = 0; b < plan->block_count; b++)
        for (int axis = 0; axis < AXES_MAX; axis++)
            plan->blocks[b].roles[axis] = role_find("batch");
    for (int b = 0; b < plan->block_count; b++) {
        do
            draw_roles(&draw, plan, b);
        while (plan_check(plan, graph, NULL) < 0);
    }
    plan->overlap = below(&draw, 4) > 0;
    return plan;
}
