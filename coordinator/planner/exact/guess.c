/* guess.c - tries every choice of the middle block for all blocks. */
#include "coordinator/planner/exact/guess.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/exact/scout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The block's strategy with the same roles (and recomputation, if `recompute`) and the nearest
 * zero; NULL if it has none. */
static const struct strategy *find_like(const struct choices *choices,
                                        const struct strategy *strategy, bool recompute)
{
    const struct strategy *found = NULL;
    for (size_t i = 0; i < choices->vector_count; i++) {
        const struct role_vector *vector = &choices->vectors[i];
        if (memcmp(vector->strategies->roles, strategy->roles, sizeof strategy->roles) != 0)
            continue;
        for (size_t j = 0; j < vector->count; j++) {
            const struct strategy *one = &vector->strategies[j];
            if ((!recompute || one->recompute == strategy->recompute) &&
                (!found || abs(one->zero - strategy->zero) < abs(found->zero - strategy->zero)))
                found = one;
        }
    }
    return found;
}

/* Give every block the strategy; false if some block has nothing like it. */
static bool set_all(struct instance *instance, struct plan *plan, const struct strategy *strategy,
                    double *seconds)
{
    for (int b = 0; b < instance->blocks; b++) {
        bool end = b == 0 || b == instance->blocks - 1;
        int stage = b == instance->blocks - 1 ? instance->point.stages - 1 : 0;
        if (b > 0 && b < instance->blocks - 1)
            stage = plan->blocks[b].stage;
        const struct choices *choices = instance_choices(instance, stage, b);
        const struct strategy *like = find_like(choices, strategy, !end);
        struct part_cost cost;
        if (!like || costs_block(instance->costs, choices->site, b, like, NULL,
                                 instance->point.samples, &cost, NULL) < 0)
            return false;
        memcpy(plan->blocks[b].roles, like->roles, sizeof like->roles);
        plan->blocks[b].zero = like->zero;
        plan->blocks[b].recompute = like->recompute;
        seconds[b] = cost.forward_s + cost.backward_s;
    }
    return true;
}

struct plan *guess_plan(struct instance *instance, double *formula_s)
{
    int stages = instance->point.stages, middle = instance->blocks / 2;
    const struct choices *choices = instance_choices(instance, stages / 2, middle);
    struct plan *plan = space_plan(instance->costs, &instance->point);
    double *seconds = xcalloc((size_t)instance->blocks, sizeof *seconds);
    struct plan *best = NULL;
    double best_s = INFINITY, step_s, bound_s;
    bool fits;
    for (int i = 1; i < stages; i++)
        if (instance->sites[i]->kind != instance->sites[0]->kind)
            choices = NULL; /* roles of one kind of stage mean nothing on another */
    for (size_t i = 0; choices && i < choices->count; i++) {
        for (int b = 0; b < plan->block_count; b++)
            plan->blocks[b].stage = stages / 2;
        if (set_all(instance, plan, &choices->items[i].strategy, seconds) &&
            scout_balance(plan, seconds, 0) &&
            evaluate_plan(instance->costs, plan, &step_s, &bound_s, &fits, NULL) == 0 &&
            (fits || instance->relaxed) && step_s < best_s) {
            best_s = step_s;
            plan_destroy(best);
            best = plan_copy(plan);
        }
    }
    free(seconds);
    plan_destroy(plan);
    *formula_s = best_s;
    return best;
}
