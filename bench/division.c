/* division.c - builds the plan of a division, with the same role for every block. */
#include "bench/division.h"

struct plan *division_plan(const struct division *division, const struct graph *graph, int batch)
{
    struct plan *plan = plan_create(division->stages, (int)graph->block_count);
    const struct role *role = division->role ? role_find(division->role) : NULL;
    for (int i = 0; i < plan->stage_count; i++) {
        struct plan_stage *stage = &plan->stages[i];
        stage->block_first = plan->block_count * i / plan->stage_count;
        stage->block_count = plan->block_count * (i + 1) / plan->stage_count - stage->block_first;
        if (role)
            stage->mesh = (struct mesh){.axes = 1, .size = {2}};
        for (int b = 0; b < stage->block_count; b++)
            plan->blocks[stage->block_first + b] =
                (struct plan_block){.stage = i, .roles = {role}, .zero = division->zero};
    }
    plan->micro_batches = division->micro_batches;
    plan->micro_batch_samples = batch / division->micro_batches;
    return plan;
}
