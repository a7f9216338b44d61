/* plans.c - plans with one strategy for all blocks of a model, as people divide models by hand. */
#include "bench/regret/plans.h"

#define AXES 2

struct layout {
    int ranks, stages;
    const char *roles[AXES]; /* of the axes of each stage, the inner one first; two: of size 2 */
    int micro_batches, zero;
    enum recompute recompute;
    const char *schedule; /* NULL: 1f1b */
    bool one_queue;
};

static const struct layout of_two[] = {
    {1, 1, {NULL}, 1},
    {1, 1, {NULL}, 4},
    {2, 1, {"batch"}, 1},
    {2, 1, {"batch"}, 1, .one_queue = true},
    {2, 1, {"batch"}, 4},
    {2, 1, {"batch"}, 1, .zero = 1},
    {2, 1, {"batch"}, 2, .zero = 2},
    {2, 1, {"batch"}, 2, .zero = 3},
    {2, 1, {"batch"}, 1, .recompute = RECOMPUTE_SELECTIVE},
    {2, 1, {"batch"}, 1, .recompute = RECOMPUTE_FULL},
    {2, 1, {"tensor"}, 1},
    {2, 1, {"tensor"}, 4},
    {2, 1, {"tensor_seq"}, 1},
    {2, 1, {"tensor_seq"}, 2, .recompute = RECOMPUTE_FULL},
    {2, 1, {"ulysses"}, 1},
    {2, 1, {"context"}, 1},
    {2, 1, {"context"}, 2},
    {2, 1, {"hidden"}, 1},
    {2, 2, {NULL}, 1},
    {2, 2, {NULL}, 4},
    {2, 2, {NULL}, 8},
    {2, 2, {NULL}, 8, .schedule = "gpipe"},
    {2, 2, {NULL}, 4, .recompute = RECOMPUTE_FULL},
};

static const struct layout of_four[] = {
    {2, 1, {"batch"}, 1},
    {2, 2, {NULL}, 4},
    {4, 1, {"batch"}, 1},
    {4, 1, {"batch"}, 2, .zero = 2},
    {4, 1, {"batch"}, 1, .recompute = RECOMPUTE_FULL},
    {4, 1, {"tensor"}, 1},
    {4, 1, {"tensor_seq"}, 1},
    {4, 1, {"tensor", "batch"}, 1},
    {4, 1, {"tensor_seq", "batch"}, 2, .zero = 1},
    {4, 1, {"context", "batch"}, 1},
    {4, 2, {"batch"}, 4},
    {4, 2, {"batch"}, 4, .zero = 1},
    {4, 2, {"tensor"}, 4},
    {4, 4, {NULL}, 8},
};

/* What stands before the layers goes with the first of them, what stands behind with the last. */
static int end_of_stage(const struct plan *plan, int stage)
{
    int layers = plan->block_count - 2;
    return stage + 1 == plan->stage_count ? plan->block_count
                                          : 1 + layers * (stage + 1) / plan->stage_count;
}

static void fill_block(const struct layout *layout, const struct plan *plan, int stage, int block)
{
    struct plan_block *out = &plan->blocks[block];
    bool layer = block > 0 && block + 1 < plan->block_count;
    *out = (struct plan_block){.stage = stage, .zero = layout->zero};
    out->recompute = layer ? layout->recompute : RECOMPUTE_NONE;
    for (int axis = 0; axis < AXES; axis++)
        out->roles[axis] = layout->roles[axis] ? role_find(layout->roles[axis]) : NULL;
}

static struct plan *make(const struct layout *layout, const struct graph *graph, int batch)
{
    struct plan *plan = plan_create(layout->stages, (int)graph->block_count);
    int first = 0, inner = layout->roles[1] ? 2 : layout->ranks / layout->stages;
    for (int i = 0; i < layout->stages; i++) {
        struct plan_stage *stage = &plan->stages[i];
        if (layout->roles[0])
            stage->mesh = (struct mesh){.axes = layout->roles[1] ? 2 : 1, .size = {inner, 2}};
        stage->block_first = first;
        stage->block_count = end_of_stage(plan, i) - first;
        for (int b = first; b < first + stage->block_count; b++)
            fill_block(layout, plan, i, b);
        first += stage->block_count;
    }
    plan->micro_batches = layout->micro_batches;
    plan->micro_batch_samples = batch / layout->micro_batches;
    plan->schedule = schedule_find(layout->schedule ? layout->schedule : "1f1b");
    plan->overlap = !layout->one_queue;
    return plan;
}

size_t plans_make(const struct graph *graph, int ranks, int batch, struct plan *out[PLANS_MAX])
{
    const struct layout *layouts = ranks == 2 ? of_two : of_four;
    size_t all = ranks == 2 ? sizeof of_two / sizeof *of_two : sizeof of_four / sizeof *of_four;
    struct error refused;
    size_t count = 0;
    for (size_t i = 0; i < all; i++) {
        if (layouts[i].stages > (int)graph->block_count - 2)
            continue;
        struct plan *plan = make(&layouts[i], graph, batch);
        if (plan_check(plan, graph, &refused) == 0)
            out[count++] = plan;
        else
            plan_destroy(plan);
    }
    return count;
}
