/* choose.c - sorts, then analyses the copies of the few plans that could be the best. Of those that
 * shard their state, the same ones without it are considered, too: a search has no reason to look
 * at them where they are slower, but they need no copies if replicas are on two nodes. */
#include "coordinator/planner/choose.h"

#include "common/base/memory.h"
#include "coordinator/planner/shared_cores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Every plan that is looked at has to be lowered for all of its ranks; so many ranks in all may be,
 * after those of the fastest plan. */
#define BUDGET 512
#define BUDGET_HURRY 32
#define WHOLE_MAX 4 /* plans that are tried without shards */

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

/* The plan without shards; NULL if it has none. The caller owns it. */
static struct plan *make_whole(const struct plan *plan)
{
    struct plan *whole = plan_copy(plan);
    memset(&whole->predicted, 0, sizeof whole->predicted);
    for (int i = 0; i < whole->block_count; i++)
        whole->blocks[i].zero = 0;
    if (!plan_same(plan, whole))
        return whole;
    plan_destroy(whole);
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
    int budget;                 /* ranks that may still be lowered */
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

/* Judge the first plans without their shards. */
static void add_whole(struct chooser *chooser)
{
    struct planner_result *result = chooser->result;
    size_t count = result->count;
    for (size_t i = 0; i < count && i < WHOLE_MAX; i++) {
        const struct plan *plan = result->candidates[i].plan;
        struct plan *whole = make_whole(plan);
        /* What was too large to simulate instruction by instruction still is. */
        if (whole && result->candidates[i].fits && !is_candidate(result, whole) &&
            strcmp(plan->predicted.referee, "simulation") == 0 && afford(chooser, whole))
            append(chooser, whole);
        else
            plan_destroy(whole);
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
    for (size_t i = 0; i < result->count; i++) {
        struct plan *plan = candidates[i].plan;
        struct safety safety = chooser->fastest_safety;
        if (plan->predicted.step_time_s >= best_s ||
            !may_replace(chooser->request, &candidates[0], &candidates[i]))
            break; /* so are all that follow */
        if (plan != chooser->fastest && !afford(chooser, plan))
            continue;
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

/* Searches note what they proved, and the frontier, in the plan that is the fastest. */
static void hand_over(struct plan *from, struct plan *to)
{
    to->predicted.lower_bound_s = from->predicted.lower_bound_s;
    to->predicted.formula_gap = from->predicted.formula_gap;
    memcpy(to->predicted.roles, from->predicted.roles, sizeof to->predicted.roles);
    memcpy(to->predicted.alternatives, from->predicted.alternatives,
           sizeof to->predicted.alternatives);
    to->predicted.alternative_count = from->predicted.alternative_count;
    if (to->predicted.lower_bound_s > 0)
        to->predicted.gap = to->predicted.step_time_s / to->predicted.lower_bound_s - 1;
    from->predicted.lower_bound_s = from->predicted.gap = from->predicted.formula_gap = 0;
    from->predicted.roles[0] = '\0';
    from->predicted.alternative_count = 0;
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
    if (chooser.fastest_safety.copy_s > 0 && !(request->job->plan.forbid.zero & 1)) {
        add_whole(&chooser);
        sort(request, result);
    }
    size_t best = find_best(&chooser);
    struct candidate chosen = result->candidates[best];
    if (chosen.plan != fastest)
        hand_over(fastest, chosen.plan);
    memmove(&result->candidates[1], &result->candidates[0], best * sizeof chosen);
    result->candidates[0] = chosen;
}
