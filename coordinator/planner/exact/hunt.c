/* hunt.c - the outer loop of the exact search.
 *
 * Scouts go first: the plans they find prune points and tell which of the others to open first. All
 * limits count work instead of time, so every run gives the same answer. */
#include "coordinator/planner/exact/hunt.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/exact/deepening.h"
#include "coordinator/planner/exact/listing.h"
#include "coordinator/planner/exact/opening.h"
#include "coordinator/planner/exact/scouting.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Share of the work budget that may go into relaxed points. */
#define RELAXED_SHARE 0.6
/* The same that may go into points which are not opened. */
#define SURVEYED_SHARE 0.4
/* Factor on the budget to prove that the best is near the optimum. */
#define PROVING 4
/* Parts for this many devices take twice as long to lower as parts for one. */
#define PARTS_DEVICES 32
/* Factor on the budget where memory is short: where more of it would save this fraction of the
 * step. */
#define TIGHT 4
#define TIGHT_SHARE 0.001
/* While the best step exceeds the least bound by this factor, little is known. */
#define IGNORANT_RATIO 1.6

int hunt_init(struct hunt *hunt, const struct planner_request *request,
              const struct hunt_limits *limits, struct error *err)
{
    *hunt = (struct hunt){.request = request, .limits = *limits};
    basis_init(&hunt->basis, &hunt->costs);
    return costs_init(&hunt->costs, request, err);
}

static void forget(struct hunt *hunt)
{
    for (size_t i = 0; i < hunt->found_count; i++)
        plan_destroy(hunt->found[i].plan);
    hunt->found_count = 0;
    free(hunt->points);
    hunt->points = NULL;
    plan_destroy(hunt->smallest);
    hunt->smallest = NULL;
    hunt->opened = 0;
    hunt->best_s = hunt->formula_least_s = hunt->least_s = INFINITY;
    hunt->simulated_s = hunt->unlisted_s = INFINITY;
}

void hunt_finish(struct hunt *hunt)
{
    forget(hunt);
    free(hunt->found);
    basis_finish(&hunt->basis);
    costs_finish(&hunt->costs);
}

void hunt_add(struct hunt *hunt, struct plan *plan, double formula_s)
{
    double again_s, bound_s;
    bool fits;
    hunt->best_s = fmin(hunt->best_s, formula_s);
    planner_tell_best(hunt->request, formula_s);
    for (size_t i = 0; i < hunt->found_count; i++)
        if (plan_same(hunt->found[i].plan, plan)) { /* it was found before, with few roles */
            plan_destroy(plan);
            return;
        }
    evaluate_plan(&hunt->costs, plan, &again_s, &bound_s, &fits, NULL);
    plan->predicted.formula_s = formula_s;
    hunt->found = grow(hunt->found, hunt->found_count, &hunt->found_capacity, sizeof *hunt->found);
    hunt->found[hunt->found_count++] = (struct found){plan, formula_s, bound_s};
}

static int by_formula(const void *first, const void *second)
{
    const struct found *a = first, *b = second;
    if (a->formula_s != b->formula_s)
        return a->formula_s < b->formula_s ? -1 : 1;
    return plan_ranks(a->plan) - plan_ranks(b->plan);
}

bool hunt_is_enough(const struct hunt *hunt)
{
    return planner_stopped(hunt->request) || (hunt->request->any && hunt->found_count > 0);
}

/* Whether plans would be faster with more memory; if so, it is worth searching longer for what to
 * give up. */
static bool is_tight(const struct hunt *hunt)
{
    for (size_t i = 0; i < hunt->point_count; i++)
        if (hunt->points[i].hope_s < hunt->best_s * (1 - TIGHT_SHARE))
            return true;
    return false;
}

/* Whether hardly any promising point has been searched yet. */
static bool is_ignorant(const struct hunt *hunt)
{
    double least_s = INFINITY;
    for (size_t i = 0; i < hunt->point_count; i++)
        if (!hunt->points[i].too_small)
            least_s = fmin(least_s, hunt->points[i].bound.formula_s);
    return hunt->best_s > IGNORANT_RATIO * least_s;
}

/* Whether the best is not yet proved to be near the optimum. */
static bool is_unproved(const struct hunt *hunt)
{
    double least_s = INFINITY;
    for (size_t i = 0; i < hunt->point_count; i++) {
        const struct hunt_point *at = &hunt->points[i];
        if (!at->too_small)
            least_s = fmin(least_s, bounds_large(&hunt->basis, &at->point) ? at->bound.simulated_s
                                                                           : at->bound.formula_s);
    }
    return hunt->best_s > (1 + hunt->limits.proof) * least_s;
}

/* The budget of lowered parts, as things stand. */
static size_t parts_allowed(const struct hunt *hunt, int most)
{
    const struct hunt_limits *limits = &hunt->limits;
    if (limits->parts == SIZE_MAX)
        return SIZE_MAX;
    size_t parts = limits->parts * (size_t)most * (is_tight(hunt) ? TIGHT : 1);
    size_t parts_most = limits->parts_most * PARTS_DEVICES / (PARTS_DEVICES + (size_t)most);
    parts = parts > limits->parts_least ? parts : limits->parts_least;
    parts = parts < parts_most ? parts : parts_most;
    if (hunt->found_count == 0) /* only a long search can claim that no plan fits */
        parts *= limits->search;
    else if (is_ignorant(hunt))
        parts *= limits->patience;
    else if (most <= limits->proof_devices && is_unproved(hunt))
        parts *= PROVING;
    return parts;
}

/* Whether this share of the budget is used up, or the search may end. */
static bool is_over(const struct hunt *hunt, int most, double share)
{
    double lowered = (double)(hunt->costs.lowered - hunt->before);
    return hunt_is_enough(hunt) || lowered > share * (double)parts_allowed(hunt, most);
}

/* Search the most promising legal point at once: the better the best plan, the fewer points and
 * strategies can beat it. */
static bool open_first(struct hunt *hunt, int *rc, struct error *err)
{
    bool legal = false;
    for (size_t i = 0; i < hunt->point_count && !legal && !hunt_is_enough(hunt); i++)
        if (opening_is_due(hunt, &hunt->points[i]) &&
            opening_relax(hunt, &hunt->points[i], rc, err)) {
            if (opening_is_open(hunt, &hunt->points[i]))
                opening_close(hunt, &hunt->points[i]);
            legal = true;
        }
    return legal;
}

/* Open points until the limits are reached: all of them relaxed, then with the memory there is.
 * While little is known, the best is likely far better than what has been found, so points are
 * closed at once. */
static bool open_points(struct hunt *hunt, int most, int *rc, struct error *err)
{
    bool legal = open_first(hunt, rc, err);
    if (isfinite(hunt->best_s))
        listing_rest(hunt, most);
    for (size_t i = 0; i < hunt->point_count; i++) {
        struct hunt_point *at = &hunt->points[i];
        legal = legal || at->too_small;
        if (!opening_is_due(hunt, at))
            continue;
        if (is_over(hunt, most, RELAXED_SHARE))
            break;
        legal = opening_relax(hunt, at, rc, err) || legal;
        if (opening_is_open(hunt, at) && is_ignorant(hunt))
            opening_close(hunt, at);
    }
    for (size_t i = 0; i < hunt->point_count; i++) {
        if (!opening_is_open(hunt, &hunt->points[i]))
            continue;
        if (is_over(hunt, most, 1))
            break;
        opening_close(hunt, &hunt->points[i]);
    }
    return legal;
}

/* Tighten the bounds of points that were not opened, least first, as long as the budget lasts: most
 * of them share kinds of stages, whose blocks are priced once. */
static void survey_rest(struct hunt *hunt, int most)
{
    hunt->before = hunt->costs.lowered;
    while (isfinite(hunt->best_s) && !is_over(hunt, most, SURVEYED_SHARE)) {
        struct hunt_point *least = NULL;
        for (size_t i = 0; i < hunt->point_count; i++) {
            struct hunt_point *at = &hunt->points[i];
            if (opening_is_due(hunt, at) && !at->surveyed &&
                (!least || at->bound.simulated_s < least->bound.simulated_s))
                least = at;
        }
        if (!least || least->bound.simulated_s * (1 + hunt->limits.proof) >= hunt->best_s)
            return;
        opening_survey(hunt, least);
    }
}

void hunt_certify(struct hunt *hunt)
{
    hunt->formula_least_s = hunt->best_s;
    hunt->least_s = hunt->unlisted_s;
    for (size_t i = 0; i < hunt->point_count; i++) {
        const struct point_bound *bound = &hunt->points[i].bound;
        if (hunt->points[i].too_small)
            continue;
        hunt->formula_least_s = fmin(hunt->formula_least_s, bound->formula_s);
        hunt->least_s = fmin(hunt->least_s, bound->simulated_s);
    }
}

int hunt_points(struct hunt *hunt, int least, int most, struct error *err)
{
    forget(hunt);
    listing_points(hunt, least, most);
    if (hunt->point_count == 0)
        return error_set(err, -EINVAL,
                         "no plan on %d to %d devices agrees with plan.pin and plan.forbid, a "
                         "global batch of %lld and %zu layers",
                         least, most, (long long)hunt->request->job->train.global_batch,
                         hunt->request->graph->block_count - 2);
    return 0;
}

static void offer_roles(struct hunt *hunt, bool narrow, int most)
{
    if (hunt->costs.narrow != narrow)
        basis_forget(&hunt->basis, narrow && most <= hunt->limits.proof_devices);
    hunt->costs.narrow = narrow;
}

static void bound_points(struct hunt *hunt)
{
    for (size_t i = 0; i < hunt->point_count; i++)
        opening_bound(hunt, &hunt->points[i]);
}

/* With all roles points are worth opening again. If few were offered when points were listed, there
 * may be more of them. */
static void widen(struct hunt *hunt, int least, int most)
{
    offer_roles(hunt, false, most);
    hunt->before = hunt->costs.lowered;
    if (most > hunt->limits.wide_devices) {
        free(hunt->points);
        listing_points(hunt, least, most);
    } else {
        listing_again(hunt);
    }
    bound_points(hunt);
}

int hunt_run(struct hunt *hunt, int least, int most, struct error *err)
{
    offer_roles(hunt, most > hunt->limits.wide_devices, most);
    int rc = hunt_points(hunt, least, most, err);
    if (rc < 0)
        return rc;
    bound_points(hunt);
    scouting_run(hunt);
    if (hunt->found_count == 0 && isfinite(hunt->limits.plans))
        scouting_smallest(hunt);
    bool legal = hunt->found_count > 0 || hunt->smallest;
    listing_sort(hunt);
    offer_roles(hunt, hunt->costs.narrow || hunt->found_count == 0, most);
    hunt->before = hunt->costs.lowered;
    if (hunt->costs.narrow)
        legal = open_points(hunt, most, &rc, err) || legal;
    if (most <= hunt->limits.wide_devices || !legal) {
        widen(hunt, least, most);
        legal = open_points(hunt, most, &rc, err) || legal;
    }
    if (isfinite(hunt->best_s))
        listing_rest(hunt, most);
    if (!legal)
        return error_prefix(err, -EINVAL, "no legal plan on %d to %d devices", least, most);
    survey_rest(hunt, most);
    deepening_run(hunt);
    hunt_certify(hunt);
    if (hunt->found_count > 1)
        qsort(hunt->found, hunt->found_count, sizeof *hunt->found, by_formula);
    return 0;
}
