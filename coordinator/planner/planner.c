/* planner.c - the frame around every search: checks the request, runs the search on the devices as
 * they are while a plan uses them, chooses among the candidates, and words the answer or the reason
 * why there is none.
 *
 * A search takes a device to be equally fast in all plans. That holds for plans on 1 to n of the
 * first devices as long as none of these shares cores with another, and for plans on exactly n
 * otherwise. So numbers of devices are divided into such ranges, and most requests have one. What
 * is proved of the best plan is then what holds for all ranges.
 *
 * A search ranks plans by the time of a step. But a plan that leaves state on a single node also
 * spends time on copies of it (safety.h), which one that is a little slower may not need. So the
 * copies of the few plans that could be the best are analysed. Two more ways to shard their state
 * are considered, which a search had no reason to look at where they are a little slower: nowhere,
 * so that no copies are needed if replicas are on two nodes; and everywhere, so that a rank has
 * little to copy. */
#include "coordinator/planner/planner.h"

#include "common/base/units.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/costs/shared_cores.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/searches/searches.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRICED_MAX 16 /* plans whose copies are priced */
/* Plans with other ZeRO stages have to be simulated, which is done with so many ranks in all. */
#define BUDGET 512
#define BUDGET_HURRY 32
#define RESHARDED_MAX 4 /* plans of which others are made */

static int search_range(const struct search *search, const struct planner_request *request,
                        int least, int most, struct planner_result *out, struct error *err)
{
    struct shared_cores used;
    struct job_config job = *request->job;
    shared_cores_init(&used, request->devices, most);
    struct planner_request ask = shared_cores_ask(request, &used);
    job.devices.min = least;
    job.devices.max = most;
    ask.job = &job;
    int rc = search->run(&ask, out, err);
    shared_cores_finish(&used);
    return rc;
}

/* What was proved so far, of all ranges together. */
struct proof {
    double least_s, formula_best_s, formula_least_s;
    char roles[sizeof((struct plan *)0)->predicted.roles];
    bool none; /* of a range in which a plan fits, nothing is proved */
};

/* The least step by the formula, of the candidates that fit. The search's own best by the formula
 * is among them; the fastest by simulation may be another. */
static double least_formula(const struct planner_result *range)
{
    double least_s = INFINITY;
    for (size_t i = 0; i < range->count; i++) {
        double formula_s = range->candidates[i].plan->predicted.formula_s;
        if (range->candidates[i].fits && formula_s > 0)
            least_s = fmin(least_s, formula_s);
    }
    return least_s;
}

/* Take over what the search proved of a range, which it noted in its best plan. */
static void take_proof(struct proof *proof, const struct planner_result *range, struct plan *best)
{
    if (!best)
        return;
    double formula_s = least_formula(range);
    proof->none = proof->none || !(best->predicted.lower_bound_s > 0);
    proof->least_s = fmin(proof->least_s, best->predicted.lower_bound_s);
    proof->formula_best_s = fmin(proof->formula_best_s, formula_s);
    proof->formula_least_s =
        fmin(proof->formula_least_s, formula_s / (1 + best->predicted.formula_gap));
    if (best->predicted.roles[0])
        memcpy(proof->roles, best->predicted.roles, sizeof proof->roles);
    best->predicted.lower_bound_s = best->predicted.gap = best->predicted.formula_gap = 0;
    best->predicted.roles[0] = '\0';
}

static void give_proof(const struct proof *proof, struct plan *best)
{
    if (!best || proof->none)
        return;
    best->predicted.lower_bound_s = fmin(proof->least_s, best->predicted.step_time_s);
    best->predicted.gap = best->predicted.step_time_s / best->predicted.lower_bound_s - 1;
    best->predicted.formula_gap = proof->formula_best_s / proof->formula_least_s - 1;
    memcpy(best->predicted.roles, proof->roles, sizeof best->predicted.roles);
}

static void merge_range(struct planner_result *out, struct planner_result *more)
{
    for (size_t i = 0; i < more->count; i++)
        candidates_add(out, &more->candidates[i]);
    out->looked_at += more->looked_at ? more->looked_at : more->count;
    more->count = 0; /* the plans belong to the other result now */
    candidates_finish(more);
}

/* Search each range, without looking for what would fit where nothing does. Returns the end of the
 * last range of which more memory might make something fit; 0: there is none. */
static int search_ranges(const struct search *search, const struct planner_request *request,
                         int least, int most, struct planner_result *out)
{
    enum job_objective objective = request->job->plan.objective;
    struct proof proof = {INFINITY, INFINITY, INFINITY, "", false};
    int scarce = 0;
    bool enough = false;
    for (int end; least <= most && !enough && !planner_stopped(request); least = end + 1) {
        struct planner_result range = {0};
        end = shared_cores_end(request, least, most);
        int rc = search_range(search, request, least, end, &range, NULL);
        struct plan *best = rc == 0 ? candidates_best(&range, 0) : NULL;
        scarce = !best && rc != -EINVAL ? end : scarce;
        enough = best && (request->any || objective == JOB_DEVICES);
        take_proof(&proof, &range, best);
        merge_range(out, &range);
    }
    struct plan *best = candidates_best(out, 0);
    give_proof(&proof, best);
    if (best && objective == JOB_FRONTIER)
        candidates_alternatives(out, best);
    return scarce;
}

/* Search, and where numbers of devices have to be searched range by range, prove what holds for
 * all. */
static int search_devices(const struct search *search, const struct planner_request *request,
                          struct planner_result *out, struct error *err)
{
    int least, most;
    planner_limits(request, &least, &most);
    if (shared_cores_end(request, least, most) == most)
        return search_range(search, request, least, most, out, err);
    int scarce = search_ranges(search, request, least, most, out);
    if (candidates_fits(out))
        return 0;
    candidates_finish(out);
    most = scarce ? scarce : most;
    while (shared_cores_end(request, least, most) < most)
        least = shared_cores_end(request, least, most) + 1;
    return search_range(search, request, least, most, out, err);
}

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
    struct shared_cores used;
    if (shared_cores_order(request, plan, &used, NULL) == 0) {
        struct planner_request ask = shared_cores_ask(request, &used);
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
static void judge_resharded(struct chooser *chooser, struct plan *plan)
{
    struct planner_result judged = {0};
    if (planner_given(chooser->request, plan, &judged, NULL) == 0) {
        candidates_add(chooser->result, &judged.candidates[0]);
        judged.count = 0; /* the plan belongs to the other result now */
    }
    candidates_finish(&judged);
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
            judge_resharded(chooser, plan);
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
static double cost_with_copies(const struct planner_request *request, const struct plan *plan,
                               const struct safety *safety)
{
    double share = request->job->elastic.copy_share > 0 ? request->job->elastic.copy_share : 1;
    double step_s = plan->predicted.step_time_s;
    return step_s + (safety->no_room ? share * step_s : safety_seconds(safety));
}

static struct safety price_copies(const struct planner_request *request, struct plan *plan)
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
            safety = price_copies(chooser->request, plan);
        if (cost_with_copies(chooser->request, plan, &safety) >= best_s)
            continue;
        best = i;
        best_s = cost_with_copies(chooser->request, plan, &safety);
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

static void sort_candidates(const struct planner_request *request, struct planner_result *result)
{
    enum job_objective objective = request->job->plan.objective;
    qsort_r(result->candidates, result->count, sizeof *result->candidates, better_first,
            &objective);
}

/* Order the candidates by the job's objective, and put first the one that is best with its copies;
 * what was proved of the fastest one is then told of it. Fills in result->safety. There must be a
 * candidate. */
static void choose_best(const struct planner_request *request, struct planner_result *result)
{
    sort_candidates(request, result);
    struct plan *fastest = result->candidates[0].plan;
    struct chooser chooser = {
        request, result, request->hurry ? BUDGET_HURRY : BUDGET, fastest, {0}};
    if (!result->candidates[0].fits || request->any)
        return;
    chooser.fastest_safety = price_copies(request, fastest);
    if (chooser.fastest_safety.copy_s > 0) {
        add_resharded(&chooser);
        sort_candidates(request, result);
    }
    size_t best = find_best(&chooser);
    struct candidate chosen = result->candidates[best];
    bool has_frontier = fastest->predicted.alternative_count > 0;
    if (chosen.plan != fastest)
        hand_over(fastest, chosen.plan);
    fastest->predicted.alternative_count = 0;
    if (has_frontier) /* of which the plans that were added may be part */
        candidates_alternatives(result, chosen.plan);
    memmove(&result->candidates[1], &result->candidates[0], best * sizeof chosen);
    result->candidates[0] = chosen;
}

/* No candidate fits; candidates[0] needs the least. Raising plan.memory is suggested only where
 * every device is large enough for it. */
static int explain_memory(const struct planner_request *request,
                          const struct planner_result *result, struct error *err)
{
    char tight[CANDIDATES_TIGHT_SIZE], text[96], size[32];
    const struct plan *least = result->candidates[0].plan;
    uint64_t most = least->predicted.memory_bytes_max;
    bool allowable = true;
    for (int i = 0; i < plan_ranks(least); i++)
        allowable = allowable && most <= request->devices[i].memory_bytes;
    return error_set(err, -ENOSPC,
                     "no plan fits: the smallest of %zu, %s on %d devices, needs %s; it would run "
                     "with %s of at least %llu bytes (%s), more devices, or a smaller "
                     "train.global_batch or model",
                     result->count, plan_print(text, sizeof text, least), plan_ranks(least),
                     candidates_print_tight(request, &result->candidates[0], tight, sizeof tight),
                     allowable ? "plan.memory" : "devices", (unsigned long long)most,
                     units_print_bytes(size, sizeof size, (double)most));
}

int planner_run(const struct planner_request *request, struct planner_result *out,
                struct error *err)
{
    *out = (struct planner_result){0};
    int rc = planner_names(request->job, err);
    if (rc < 0)
        return rc;
    const struct search *search = search_find(request->job->plan.search);
    assert(search);
    if (request->job->devices.min > request->device_count)
        return error_set(err, -EINVAL, "devices.min is %lld, and there are %d devices",
                         (long long)request->job->devices.min, request->device_count);
    rc = pins_check(request, err);
    if (rc < 0)
        return rc;
    rc = search_devices(search, request, out, err);
    if (planner_stopped(request))
        return error_set(err, -ECANCELED, "the search %s was stopped before it had an answer",
                         search->name);
    if (rc < 0)
        return rc;
    choose_best(request, out);
    for (size_t i = 0; i < out->count; i++) {
        struct plan *plan = out->candidates[i].plan;
        snprintf(plan->predicted.search, sizeof plan->predicted.search, "%s", search->name);
        plan->predicted.candidates = (int)(out->looked_at ? out->looked_at : out->count);
    }
    if (!out->candidates[0].fits)
        return explain_memory(request, out, err);
    out->best = out->candidates[0].plan;
    if (err)
        *err = (struct error){0}; /* of what was refused on the way */
    return 0;
}

/* Makes the only candidate the answer, if it fits. */
static int take_given(const struct planner_request *request, struct planner_result *out,
                      struct error *err)
{
    char tight[CANDIDATES_TIGHT_SIZE];
    assert(out->count == 1);
    struct plan *plan = out->candidates[0].plan;
    snprintf(plan->predicted.search, sizeof plan->predicted.search, "%s", "given");
    plan->predicted.candidates = 1;
    if (!out->candidates[0].fits)
        return error_set(err, -ENOSPC, "the given plan does not fit: it needs %s",
                         candidates_print_tight(request, &out->candidates[0], tight, sizeof tight));
    out->best = plan;
    out->safety = safety_of(request, plan);
    plan->predicted.copies_time_s = safety_seconds(&out->safety);
    return 0;
}

int planner_given(const struct planner_request *request, struct plan *plan,
                  struct planner_result *out, struct error *err)
{
    *out = (struct planner_result){0};
    struct shared_cores used = {0};
    int rc = plan_check(plan, request->graph, err);
    if (rc == 0)
        rc = shared_cores_order(request, plan, &used, err);
    struct planner_request ask = shared_cores_ask(request, &used);
    if (rc == 0)
        rc = simulate_programs(&ask, plan, out, err);
    else
        plan_destroy(plan);
    if (rc == 0)
        rc = take_given(&ask, out, err);
    else
        error_prefix(err, rc, "plan");
    shared_cores_finish(&used);
    return rc;
}
