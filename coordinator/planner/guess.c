/* guess.c - every vector of roles of the middle block, tried everywhere. */
#include "coordinator/planner/guess.h"

#include "common/base/memory.h"
#include "coordinator/planner/evaluate.h"
#include "coordinator/planner/scout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The block's choice with these roles and zero that is nearest to the strategy, or NULL. */
static const struct choice *find_like(const struct choices *choices,
                                      const struct strategy *strategy, bool recompute)
{
    const struct choice *found = NULL;
    for (size_t i = 0; i < choices->count; i++) {
        const struct strategy *one = &choices->items[i].strategy;
        if (memcmp(one->roles, strategy->roles, sizeof one->roles) != 0 ||
            (recompute && one->recompute != strategy->recompute))
            continue;
        if (!found || abs(one->zero - strategy->zero) < abs(found->strategy.zero - strategy->zero))
            found = &choices->items[i];
    }
    return found;
}

/* false: some block has no such strategy. */
static bool set_all(struct instance *instance, struct plan *plan, const struct strategy *strategy,
                    double *seconds)
{
    for (int b = 0; b < instance->blocks; b++) {
        bool end = b == 0 || b == instance->blocks - 1;
        int stage = b == instance->blocks - 1 ? instance->point.stages - 1 : 0;
        if (b > 0 && b < instance->blocks - 1)
            stage = plan->blocks[b].stage;
        const struct choices *choices = instance_choices(instance, stage, b);
        const struct choice *choice = find_like(choices, strategy, !end);
        if (!choice)
            return false;
        memcpy(plan->blocks[b].roles, choice->strategy.roles, sizeof choice->strategy.roles);
        plan->blocks[b].zero = choice->strategy.zero;
        plan->blocks[b].recompute = choice->strategy.recompute;
        seconds[b] = choice->cost.forward_s + choice->cost.backward_s;
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
            choices = NULL; /* vectors of one stage are none of another */
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
