/* confirm.c - simulation of the few plans that may turn out best, and the certificate of the
 * best. */
#include "coordinator/planner/exact/confirm.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/candidates.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/exact/block_order.h"
#include "coordinator/planner/exact/closing.h"
#include "coordinator/planner/exact/polish.h"
#include "coordinator/planner/exact/resuming.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Plans of different points that are simulated; large ones are simulated by stages only. */
#define CONFIRMED_MAX 8
/* block runs in all simulated plans together; the most promising ones are exempt */
#define CONFIRMED_RUNS_MAX 4096
/* How many plans, besides the best, have their neighbours tried, and how much slower than the best
 * they may be. */
#define POLISHED_MAX 4
#define POLISHED_REACH 1.15
/* A plan proved to be this close to the best is not polished if it is judged by events, which is
 * quick; limits.proof is for others. */
#define PROOF_LARGE 0.002
#define FRONTIER_STEP 0.85
#define SMALLER 0.999999

/* Whether simulation may find the plan better than the best so far. The formula overestimates plans
 * of one stage by next to nothing and those of unequal stages by some, so the latter get slack as
 * long as little has been simulated. runs: block runs simulated so far plus those of this plan. */
static bool is_promising(const struct hunt *hunt, const struct plan *plan,
                         const struct planner_result *out, int64_t runs)
{
    const struct plan *best = candidates_best(out, 0);
    double slack = plan->stage_count > 1 ? hunt->limits.slack : 0;
    if (!best || plan->predicted.formula_s < best->predicted.step_time_s)
        return true;
    if (isfinite(hunt->limits.plans) &&
        plan->predicted.formula_s >= best->predicted.step_time_s * (1 + slack))
        return false;
    return simulate_is_large(plan) || runs <= CONFIRMED_RUNS_MAX;
}

/* Simulate the plan with its equal blocks in other orders. For large plans the order makes no
 * difference. */
static int confirm_orders(struct hunt *hunt, const struct plan *plan, struct planner_result *out,
                          struct error *err)
{
    int rc = 0;
    for (int order = 0; order < BLOCK_ORDERS && rc == 0 && !simulate_is_large(plan); order++) {
        struct plan *other =
            block_order_sort(plan, hunt->costs.model.place, (enum block_order)order);
        if (other)
            rc = simulate_plan(&hunt->costs, other, out, err);
    }
    return rc;
}

static int confirm_found(struct hunt *hunt, struct planner_result *out, struct error *err)
{
    int64_t runs = 0;
    int rc = 0;
    for (size_t i = 0; i < hunt->found_count && i < CONFIRMED_MAX && rc == 0; i++) {
        if (planner_stopped(hunt->request))
            return -ECANCELED;
        const struct plan *plan = hunt->found[i].plan;
        if (!is_promising(hunt, plan, out, runs + simulate_block_runs(plan)))
            continue;
        hunt->found[i].simulated = true;
        runs += simulate_block_runs(plan);
        rc = simulate_plan(&hunt->costs, plan_copy(plan), out, err);
        if (rc == 0)
            rc = confirm_orders(hunt, plan, out, err);
    }
    return rc;
}

/* The fastest plan that fits among candidates from `first` on whose neighbours were not tried. */
static const struct plan *find_unpolished(const struct planner_result *out, size_t first)
{
    const struct plan *best = NULL;
    for (size_t i = first; i < out->count; i++) {
        const struct candidate *candidate = &out->candidates[i];
        if (candidate->fits && !candidate->polished &&
            (!best || candidates_shorter(candidate->plan, best)))
            best = candidate->plan;
    }
    return best;
}

/* Try the neighbours of the best plan, and of up to `others` more whose neighbours may beat it. */
static int polish(struct hunt *hunt, size_t first, int others, int64_t *runs,
                  struct planner_result *out, struct error *err)
{
    int rc = 0;
    for (int i = 0; i <= others && rc == 0; i++) {
        const struct plan *best = candidates_best(out, first), *next = find_unpolished(out, first);
        double best_s = best ? best->predicted.step_time_s : 0;
        double proof = best && simulate_is_large(best) ? PROOF_LARGE : hunt->limits.proof;
        if (!next || best_s <= (1 + proof) * hunt->least_s ||
            next->predicted.step_time_s > (others ? POLISHED_REACH : 1) * best_s)
            break;
        rc = polish_run(hunt, next, runs, out, err);
    }
    return rc;
}

/* Simulate what was found and may still beat *best, which is updated. */
static int confirm_left(struct hunt *hunt, const struct plan **best, int64_t *runs,
                        struct planner_result *out, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < hunt->found_count && rc == 0; i++) {
        struct found *found = &hunt->found[i];
        double best_s = (*best)->predicted.step_time_s;
        double reach = found->plan->stage_count > 1 ? 1 + hunt->limits.over : 1;
        if (found->simulated || found->bound_s >= best_s || found->formula_s >= best_s * reach)
            continue;
        *runs += simulate_is_large(found->plan) ? 0 : simulate_block_runs(found->plan);
        if (*runs > CONFIRMED_RUNS_MAX)
            break;
        found->simulated = true;
        size_t count = out->count;
        rc = simulate_plan(&hunt->costs, plan_copy(found->plan), out, err);
        const struct candidate *last = &out->candidates[out->count - 1];
        if (rc == 0 && out->count > count && last->fits && candidates_shorter(last->plan, *best))
            *best = last->plan;
    }
    return rc;
}

/* Also resume points that were given up although the best simulated step takes longer than their
 * bounds. */
static int confirm_resumed(struct hunt *hunt, const struct plan *best, struct planner_result *out,
                           struct error *err)
{
    int64_t runs = 0;
    int rc = 0;
    do
        rc = confirm_left(hunt, &best, &runs, out, err);
    while (rc == 0 && runs <= CONFIRMED_RUNS_MAX &&
           resuming_next(hunt, best->predicted.step_time_s));
    hunt_certify(hunt);
    return rc;
}

int confirm_run(struct hunt *hunt, struct planner_result *out, struct error *err)
{
    size_t first = out->count;
    out->looked_at += hunt->opened;
    int64_t runs = hunt->limits.polish;
    int rc = confirm_found(hunt, out, err);
    if (rc == 0 && runs > 0)
        rc = polish(hunt, first, 0, &runs, out, err);
    if (rc == 0 && candidates_best(out, first))
        rc = confirm_resumed(hunt, candidates_best(out, first), out, err);
    if (rc == 0 && runs > 0)
        rc = polish(hunt, first, POLISHED_MAX, &runs, out, err);
    struct plan *best = candidates_best(out, first);
    if (rc < 0 || !best)
        return rc;
    double best_s = best->predicted.step_time_s, least_s = fmin(hunt->least_s, best_s);
    if (closing_is_small(hunt))
        rc = closing_run(hunt, &best_s, &least_s, out, err);
    best = candidates_best(out, first);
    best->predicted.formula_gap = hunt->best_s / hunt->formula_least_s - 1;
    best->predicted.lower_bound_s = least_s;
    best->predicted.gap = best_s / least_s - 1;
    space_roles(&hunt->costs, best->predicted.roles, sizeof best->predicted.roles);
    return rc;
}

int confirm_frontier(struct hunt *hunt, int least, int most, struct planner_result *out,
                     struct error *err)
{
    int rc = 0;
    for (int devices = most; devices >= least && rc == 0 && !planner_stopped(hunt->request);
         devices--) {
        double scale = 1, share = 1;
        for (; rc == 0; scale *= fmin(FRONTIER_STEP, share * SMALLER)) {
            sites_scale(&hunt->costs.sites, scale);
            /* Some numbers of devices cannot be divided; that is no error here. */
            if (hunt_run(hunt, devices, devices, NULL) < 0 || hunt->found_count == 0)
                break;
            rc = simulate_plan(&hunt->costs, plan_copy(hunt->found[0].plan), out, err);
            out->looked_at += hunt->opened;
            /* With more memory than this plan fills, the same plan would be found again. */
            evaluate_filling(&hunt->costs, hunt->found[0].plan, &share, NULL);
        }
    }
    sites_scale(&hunt->costs.sites, 0);
    candidates_alternatives(out, candidates_best(out, 0));
    return rc;
}
