/* choose.c - sorts, then analyses the copies of the few plans that could be the best. Two more ways
 * to shard their state are considered, which a search had no reason to look at where they are a
 * little slower: nowhere, so that no copies are needed if replicas are on two nodes; and
 * everywhere, so that a rank has little to copy. */
#include "coordinator/planner/choose.h"

#include "coordinator/planner/confirm.h"
#include "coordinator/planner/shared_cores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PRICED_MAX 16 /* plans whose copies are priced */
/* Plans with other ZeRO stages have to be simulated, which is done with so many ranks in all. */
#define BUDGET 512
#define BUDGET_HURRY 32
#define RESHARDED_MAX 4 /* plans of which others are made */

static int better_first(const void *a, const void *b, void *context)
{
    const struct candidate *first = a, *second = b;
    enum job_objective objective = *(const enum job_objective *)context;
    int fewer = plan_ranks(first->plan) - plan_ranks(second->plan);
    if (first->fits != second->fits)
        return first->fits ? -1 : 1;
    if (first->fits && objective == JOB_DEVICES && fewer != 0)
        return fewer;
    double x = first->plan->predicted.step_time_s, y = second->plan->predicted.step_time_s;
    uint64_t m = first->plan->predicted.memory_bytes_max,
             n = second->plan->predicted.memory_bytes_max;
    if (!first->fits && m != n)
        return m < n ? -1 : 1;
    if (x != y)
        return x < y ? -1 : 1;
    return strcmp(first->plan->id, second->plan->id);
}

/* On the devices as they are while the plan uses them. */
static struct safety find_safety(const struct planner_request *request, const struct plan *plan)
{
    struct safety safety = {.kind = SAFETY_UNKNOWN};
    struct planner_request ask = *request;
    struct shared_cores used;
    if (planner_order(request, plan, &used, NULL) == 0) {
        ask.devices = used.devices;
        ask.device_count = used.count;
        safety = safety_of(&ask, plan);
    }
    shared_cores_finish(&used);
    return safety;
}

/* A plan that differs in that all blocks have ZeRO stages from `least` to `most`; NULL if it does
 * not differ, or the job forbids one of them. The caller owns it. */
static struct plan *reshard(const struct plan *plan, int least, int most, uint32_t forbidden)
{
    struct plan *other = plan_copy(plan);
    bool may = true;
    memset(&other->predicted, 0, sizeof other->predicted);
    for (int i = 0; i < other->block_count; i++) {
        int zero = other->blocks[i].zero;
        zero = zero < least ? least : zero > most ? most : zero;
        may = may && !(forbidden >> zero & 1);
        other->blocks[i].zero = zero;
    }
    if (may && !plan_same(plan, other))
        return other;
    plan_destroy(other);
    return NULL;
}

static bool is_candidate(const struct planner_result *result, const struct plan *plan)
{
    for (size_t i = 0; i < result->count; i++)
        if (plan_same(result->candidates[i].plan, plan))
            return true;
    return false;
}

struct chooser {
    const struct planner_request *request;
    struct planner_result *result;
    int budget;                 /* ranks that may still be simulated */
    const struct plan *fastest; /* as the search has it */
    struct safety fastest_safety;
};

static bool afford(struct chooser *chooser, const struct plan *plan)
{
    int ranks = plan_ranks(plan);
    if (ranks > chooser->budget || planner_stopped(chooser->request))
        return false;
    chooser->budget -= ranks;
    return true;
}

/* Judge a plan, which is taken, and append it if it fits. */
static void append(struct chooser *chooser, struct plan *plan)
{
    struct planner_result judged = {0};
    if (planner_given(chooser->request, plan, &judged, NULL) == 0) {
        planner_add(chooser->result, &judged.candidates[0]);
        judged.count = 0; /* the plan belongs to the other result now */
    }
    planner_result_finish(&judged);
}

/* Judge the first plans with other ZeRO stages. */
static void add_resharded(struct chooser *chooser)
{
    static const int ranges[][2] = {{0, 0}, {1, 3}};
    struct planner_result *result = chooser->result;
    uint32_t forbidden = chooser->request->job->plan.forbid.zero;
    size_t count = result->count < RESHARDED_MAX ? result->count : RESHARDED_MAX;
    for (size_t i = 0; i < 2 * count; i++) {
        const struct candidate *from = &result->candidates[i / 2];
        const int *range = ranges[i % 2];
        struct plan *plan = reshard(from->plan, range[0], range[1], forbidden);
        /* What was too large to simulate instruction by instruction still is. */
        if (plan && from->fits && !is_candidate(result, plan) &&
            strcmp(from->plan->predicted.referee, "simulation") == 0 && afford(chooser, plan))
            append(chooser, plan);
        else
            plan_destroy(plan);
    }
}

/* Whether the objective allows to prefer `other` to `first`, which is the fastest. */
static bool may_replace(const struct planner_request *request, const struct candidate *first,
                        const struct candidate *other)
{
    bool like = request->job->plan.objective != JOB_DEVICES ||
                plan_ranks(other->plan) == plan_ranks(first->plan);
    return other->fits && like;
}

/* The time of a step with copies. A plan whose copies have no room is charged all of the time that
 * they may take: it loses more with a node, and should not be preferred for what it leaves out. */
static double cost_of(const struct planner_request *request, const struct plan *plan,
                      const struct safety *safety)
{
    double share = request->job->elastic.copy_share > 0 ? request->job->elastic.copy_share : 1;
    double step_s = plan->predicted.step_time_s;
    return step_s + (safety->no_room ? share * step_s : safety_seconds(safety));
}

static struct safety price(const struct planner_request *request, struct plan *plan)
{
    struct safety safety = find_safety(request, plan);
    plan->predicted.copies_time_s = safety_seconds(&safety);
    return safety;
}

static size_t find_best(struct chooser *chooser)
{
    struct planner_result *result = chooser->result;
    const struct candidate *candidates = result->candidates;
    size_t best = 0;
    double best_s = INFINITY;
    for (size_t i = 0; i < result->count && i < PRICED_MAX; i++) {
        struct plan *plan = candidates[i].plan;
        struct safety safety = chooser->fastest_safety;
        if (plan->predicted.step_time_s >= best_s ||
            !may_replace(chooser->request, &candidates[0], &candidates[i]))
            break; /* so are all that follow */
        if (plan != chooser->fastest)
            safety = price(chooser->request, plan);
        if (cost_of(chooser->request, plan, &safety) >= best_s)
            continue;
        best = i;
        best_s = cost_of(chooser->request, plan, &safety);
        result->safety = safety;
    }
    return best;
}

/* Searches note what they proved in the plan that is the fastest. */
static void hand_over(struct plan *from, struct plan *to)
{
    to->predicted.lower_bound_s = from->predicted.lower_bound_s;
    to->predicted.formula_gap = from->predicted.formula_gap;
    memcpy(to->predicted.roles, from->predicted.roles, sizeof to->predicted.roles);
    if (to->predicted.lower_bound_s > 0)
        to->predicted.gap = to->predicted.step_time_s / to->predicted.lower_bound_s - 1;
    from->predicted.lower_bound_s = from->predicted.gap = from->predicted.formula_gap = 0;
    from->predicted.roles[0] = '\0';
}

static void sort(const struct planner_request *request, struct planner_result *result)
{
    enum job_objective objective = request->job->plan.objective;
    qsort_r(result->candidates, result->count, sizeof *result->candidates, better_first,
            &objective);
}

void choose_best(const struct planner_request *request, struct planner_result *result)
{
    sort(request, result);
    struct plan *fastest = result->candidates[0].plan;
    struct chooser chooser = {
        request, result, request->hurry ? BUDGET_HURRY : BUDGET, fastest, {0}};
    if (!result->candidates[0].fits || request->any)
        return;
    chooser.fastest_safety = price(request, fastest);
    if (chooser.fastest_safety.copy_s > 0) {
        add_resharded(&chooser);
        sort(request, result);
    }
    size_t best = find_best(&chooser);
    struct candidate chosen = result->candidates[best];
    bool has_frontier = fastest->predicted.alternative_count > 0;
    if (chosen.plan != fastest)
        hand_over(fastest, chosen.plan);
    fastest->predicted.alternative_count = 0;
    if (has_frontier) /* of which the plans that were added may be part */
        confirm_alternatives(result, chosen.plan);
    memmove(&result->candidates[1], &result->candidates[0], best * sizeof chosen);
    result->candidates[0] = chosen;
}
