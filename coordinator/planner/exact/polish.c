/* polish.c - simulates the neighbours of a plan and continues from the first that is faster.
 *
 * The formula knows neither how much of a message a stage hides behind computing nor how transfers
 * on one link slow each other down: with unequal stages and slow links it is off by a quarter, and
 * the plan it ranks best is not the fastest. */
#include "coordinator/planner/exact/polish.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/exact/confirm.h"
#include "coordinator/planner/exact/neighbours.h"

#include <math.h>
#include <stdlib.h>

/* Pipelines that exceed the best by this factor, by the formula, are not simulated. */
#define PIPELINE_REACH 1.25
/* Cost of a plan that is judged by events, in block runs. */
#define LARGE_RUNS 8

struct polish {
    struct hunt *hunt;
    const struct plan *best; /* lent by the result */
    struct planner_result *out;
    int64_t *runs; /* block runs that may still be simulated */
};

/* Whether the plan is in the space and may be faster. */
static bool is_worth_it(struct polish *polish, struct plan *plan)
{
    struct costs *costs = &polish->hunt->costs;
    const struct site **sites = xcalloc((size_t)plan->stage_count, sizeof *sites);
    double bound_s, best_s = polish->best->predicted.step_time_s;
    double *formula_s = &plan->predicted.formula_s;
    double reach = plan->stage_count > 1 ? PIPELINE_REACH : 1 + polish->hunt->limits.slack;
    bool fits, allowed = true;
    evaluate_sites(costs, plan, sites);
    for (int b = 0; b < plan->block_count && allowed; b++) {
        struct strategy strategy = strategy_of(plan, b);
        allowed = space_allows(costs, sites[plan->blocks[b].stage], b, &strategy,
                               plan->micro_batch_samples);
    }
    free(sites);
    return allowed && evaluate_plan(costs, plan, formula_s, &bound_s, &fits, NULL) == 0 && fits &&
           bound_s < best_s && *formula_s < reach * best_s;
}

static int64_t runs_of(const struct plan *plan)
{
    return simulate_is_large(plan) ? LARGE_RUNS : simulate_block_runs(plan);
}

/* Whether the candidate is the new best. */
static bool adopt(struct polish *polish, struct candidate *candidate)
{
    if (!candidate->fits ||
        candidate->plan->predicted.step_time_s >= polish->best->predicted.step_time_s)
        return false;
    candidate->polished = true;
    polish->best = candidate->plan;
    return true;
}

/* Takes ownership of the plan. *faster: it is the new best. */
static int try_plan(struct polish *polish, struct plan *plan, bool *faster, struct error *err)
{
    struct planner_result *out = polish->out;
    struct candidate *known = simulate_known(polish->hunt->request, plan, out);
    int64_t runs = known ? 0 : runs_of(plan);
    *faster = false;
    if (runs > *polish->runs || !is_worth_it(polish, plan)) {
        plan_destroy(plan);
        return 0;
    }
    if (known) {
        *faster = adopt(polish, known);
        plan_destroy(plan);
        return 0;
    }
    *polish->runs -= runs;
    int rc = simulate_plan(&polish->hunt->costs, plan, out, err);
    if (rc < 0)
        return rc;
    out->looked_at++;
    *faster = adopt(polish, &out->candidates[out->count - 1]);
    if (!*faster)
        plan_destroy(out->candidates[--out->count].plan);
    return 0;
}

int polish_run(struct hunt *hunt, const struct plan *from, int64_t *runs,
               struct planner_result *out, struct error *err)
{
    struct polish polish = {hunt, from, out, runs};
    bool better = true;
    int rc = 0;
    for (size_t i = 0; i < out->count; i++)
        out->candidates[i].polished =
            out->candidates[i].polished || out->candidates[i].plan == from;
    while (better) {
        better = false;
        for (int number = 0;; number++) {
            bool end, faster = false;
            struct plan *plan = neighbours_find(hunt, polish.best, number, &end);
            if (end || planner_stopped(hunt->request)) {
                plan_destroy(plan);
                break;
            }
            if (plan)
                rc = try_plan(&polish, plan, &faster, err);
            if (rc < 0)
                return rc;
            better = better || faster;
            number -= faster; /* try the same number on the new best */
        }
    }
    return 0;
}
