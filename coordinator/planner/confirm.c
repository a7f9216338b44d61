/* confirm.c - simulation of the few plans that may turn out best, and the certificate of the
 * best. */
#include "coordinator/planner/confirm.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/events.h"
#include "coordinator/planner/exact/block_order.h"
#include "coordinator/planner/exact/closing.h"
#include "coordinator/planner/exact/polish.h"
#include "coordinator/planner/exact/resuming.h"
#include "coordinator/planner/tradeoff.h"

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

bool confirm_fits(const struct planner_result *out)
{
    for (size_t i = 0; i < out->count; i++)
        if (out->candidates[i].fits)
            return true;
    return false;
}

static struct stage_cost *stage_costs(struct hunt *hunt, const struct plan *plan, bool *fits)
{
    size_t count = (size_t)plan->stage_count;
    const struct site **sites = xcalloc(count, sizeof *sites);
    struct stage_cost *stages = xcalloc(count, sizeof *stages);
    evaluate_sites(&hunt->costs, plan, sites);
    *fits = true;
    for (int i = 0; i < plan->stage_count; i++) {
        evaluate_stage(&hunt->costs, plan, sites, i, &stages[i], NULL);
        *fits = *fits && stages[i].lacking == 0;
    }
    free(sites);
    return stages;
}

static int confirm_large(struct hunt *hunt, struct plan *plan, struct planner_result *out)
{
    struct candidate candidate = {.plan = plan, .tight_rank = -1};
    double busy_s, formula_s = plan->predicted.formula_s;
    struct stage_cost *stages = stage_costs(hunt, plan, &candidate.fits);
    memset(&plan->predicted, 0, sizeof plan->predicted);
    for (int i = 0; i < plan->stage_count; i++) {
        plan->stages[i].time_s = stages[i].forward_s + stages[i].backward_s;
        plan->stages[i].memory_bytes = stages[i].bytes;
        if (stages[i].bytes > plan->predicted.memory_bytes_max)
            plan->predicted.memory_bytes_max = stages[i].bytes;
    }
    plan->predicted.formula_s = formula_s;
    plan->predicted.step_time_s =
        events_seconds(stages, plan->stage_count, plan->micro_batches, plan->schedule, &busy_s);
    plan->predicted.bubble = 1 - busy_s / plan->predicted.step_time_s;
    plan->predicted.tokens_per_s =
        (double)(plan_global_batch(plan) * sizes_get(&hunt->request->graph->sizes, 's')) /
        plan->predicted.step_time_s;
    strcpy(plan->predicted.referee, "events");
    planner_balance(plan);
    planner_name(hunt->request, plan);
    planner_add(out, &candidate);
    free(stages);
    return 0;
}

static int64_t block_runs(const struct plan *plan)
{
    return events_block_runs(plan_ranks(plan), plan->block_count, plan->stage_count,
                             plan->micro_batches);
}

static bool is_large(const struct plan *plan)
{
    return events_judge(plan_ranks(plan), plan->block_count, plan->stage_count,
                        plan->micro_batches);
}

struct candidate *confirm_find(const struct hunt *hunt, struct plan *plan,
                               const struct planner_result *out)
{
    planner_name(hunt->request, plan); /* a plan is compared with its devices */
    for (size_t i = 0; i < out->count; i++)
        if (plan_same(out->candidates[i].plan, plan))
            return &out->candidates[i];
    return NULL;
}

int confirm_plan(struct hunt *hunt, struct plan *plan, struct planner_result *out,
                 struct error *err)
{
    double formula_s = plan->predicted.formula_s;
    if (confirm_find(hunt, plan, out)) {
        plan_destroy(plan);
        return 0;
    }
    if (is_large(plan))
        return confirm_large(hunt, plan, out);
    int rc = planner_consider(hunt->request, plan, out, err);
    if (rc == 0)
        out->candidates[out->count - 1].plan->predicted.formula_s = formula_s;
    return rc;
}

static bool is_shorter(const struct plan *plan, const struct plan *other)
{
    double a = plan->predicted.step_time_s, b = other->predicted.step_time_s;
    return a < b || (a == b && strcmp(plan->id, other->id) < 0);
}

struct plan *confirm_best(const struct planner_result *out, size_t first)
{
    struct plan *best = NULL;
    for (size_t i = first; i < out->count; i++)
        if (out->candidates[i].fits && (!best || is_shorter(out->candidates[i].plan, best)))
            best = out->candidates[i].plan;
    return best;
}

/* Whether simulation may find the plan better than the best so far. The formula overestimates plans
 * of one stage by next to nothing and those of unequal stages by some, so the latter get slack as
 * long as little has been simulated. runs: block runs simulated so far plus those of this plan. */
static bool is_promising(const struct hunt *hunt, const struct plan *plan,
                         const struct planner_result *out, int64_t runs)
{
    const struct plan *best = confirm_best(out, 0);
    double slack = plan->stage_count > 1 ? hunt->limits.slack : 0;
    if (!best || plan->predicted.formula_s < best->predicted.step_time_s)
        return true;
    if (isfinite(hunt->limits.plans) &&
        plan->predicted.formula_s >= best->predicted.step_time_s * (1 + slack))
        return false;
    return is_large(plan) || runs <= CONFIRMED_RUNS_MAX;
}

/* Simulate the plan with its equal blocks in other orders. For large plans the order makes no
 * difference. */
static int confirm_orders(struct hunt *hunt, const struct plan *plan, struct planner_result *out,
                          struct error *err)
{
    int rc = 0;
    for (int order = 0; order < BLOCK_ORDERS && rc == 0 && !is_large(plan); order++) {
        struct plan *other =
            block_order_sort(plan, hunt->costs.model.place, (enum block_order)order);
        if (other)
            rc = confirm_plan(hunt, other, out, err);
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
        if (!is_promising(hunt, plan, out, runs + block_runs(plan)))
            continue;
        hunt->found[i].simulated = true;
        runs += block_runs(plan);
        rc = confirm_plan(hunt, plan_copy(plan), out, err);
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
        if (candidate->fits && !candidate->polished && (!best || is_shorter(candidate->plan, best)))
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
        const struct plan *best = confirm_best(out, first), *next = find_unpolished(out, first);
        double best_s = best ? best->predicted.step_time_s : 0;
        double proof = best && is_large(best) ? PROOF_LARGE : hunt->limits.proof;
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
        *runs += is_large(found->plan) ? 0 : block_runs(found->plan);
        if (*runs > CONFIRMED_RUNS_MAX)
            break;
        found->simulated = true;
        size_t count = out->count;
        rc = confirm_plan(hunt, plan_copy(found->plan), out, err);
        const struct candidate *last = &out->candidates[out->count - 1];
        if (rc == 0 && out->count > count && last->fits && is_shorter(last->plan, *best))
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
    if (rc == 0 && confirm_best(out, first))
        rc = confirm_resumed(hunt, confirm_best(out, first), out, err);
    if (rc == 0 && runs > 0)
        rc = polish(hunt, first, POLISHED_MAX, &runs, out, err);
    struct plan *best = confirm_best(out, first);
    if (rc < 0 || !best)
        return rc;
    double best_s = best->predicted.step_time_s, least_s = fmin(hunt->least_s, best_s);
    if (closing_is_small(hunt))
        rc = closing_run(hunt, &best_s, &least_s, out, err);
    best = confirm_best(out, first);
    best->predicted.formula_gap = hunt->best_s / hunt->formula_least_s - 1;
    best->predicted.lower_bound_s = least_s;
    best->predicted.gap = best_s / least_s - 1;
    space_roles(&hunt->costs, best->predicted.roles, sizeof best->predicted.roles);
    return rc;
}

void confirm_alternatives(const struct planner_result *out, struct plan *best)
{
    size_t count;
    assert(best && "nobody asks where nothing fits");
    const struct plan **plans = tradeoff_find(out, &count);
    for (size_t i = 0; i < count && i < PLAN_ALTERNATIVES_MAX; i++) {
        struct plan_alternative *alternative = &best->predicted.alternatives[i];
        strcpy(alternative->id, plans[i]->id);
        alternative->step_time_s = plans[i]->predicted.step_time_s;
        alternative->memory_bytes_max = plans[i]->predicted.memory_bytes_max;
        alternative->devices = plan_ranks(plans[i]);
        best->predicted.alternative_count = (int)i + 1;
    }
    free(plans);
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
            rc = confirm_plan(hunt, plan_copy(hunt->found[0].plan), out, err);
            out->looked_at += hunt->opened;
            /* With more memory than this plan fills, the same plan would be found again. */
            evaluate_filling(&hunt->costs, hunt->found[0].plan, &share, NULL);
        }
    }
    sites_scale(&hunt->costs.sites, 0);
    confirm_alternatives(out, confirm_best(out, 0));
    return rc;
}
