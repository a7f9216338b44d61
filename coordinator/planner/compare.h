/* compare.h - plans beside each other by three measures: Galvatron's accounting, a simulation that
 * is neither side's, and our programs.
 *
 * With a job, our searches use the same measurements and only plans that the formula knows: the
 * roles batch, tensor and tensor_seq; zero 0, 2 and 3; no or full recomputation; 1F1B. Two more
 * choose by Galvatron's costs alone, and need no job: "galvatron" by its formula in its space, and
 * "neutral" by the simulation with stages of any size. */
#ifndef COORDINATOR_PLANNER_COMPARE_H
#define COORDINATOR_PLANNER_COMPARE_H

#include "coordinator/planner/galvatron/plan.h"
#include "coordinator/planner/planner.h"

#define GALVATRON_SEARCH "galvatron"
#define NEUTRAL_SEARCH "neutral"

struct galvatron_row {
    const char *from; /* name of the search, or "given" */
    /* In Galvatron's terms, with what its accounting says; verdict NULL: there is none, or that
     * cannot judge it, and words says why. */
    struct galvatron_plan theirs;
    struct galvatron_verdict *verdict;
    /* In ours, with the predictions of our programs. NULL: there are none, and programs says why.
     */
    struct plan *plan;
    struct error words, programs;
};

struct galvatron_rows {
    struct galvatron_row *items;
    size_t count;
};

/* What Galvatron's search would be told of the job and its devices; the model has no name. -EINVAL:
 * not all hosts have equally many devices. */
int galvatron_spec_of(const struct planner_request *request, struct galvatron_spec *out,
                      struct error *err);
/* -EINVAL: the spec is of another model, of other devices or of another batch than the request. */
int galvatron_spec_matches(const struct planner_request *request, const struct galvatron_spec *spec,
                           struct error *err);

/* Fill one row per search, and a last one of "galvatron". `names` are of searches and end with
 * NULL; alternatively a plan may be given, in our terms or in theirs, of which ownership is taken.
 * request NULL: there is no job, and so no program of ours. -EINVAL: a name that needs a job, or
 * none; -ECANCELED: stopped. The caller finishes *out in any case. */
int galvatron_compare(const struct planner_request *request,
                      const struct galvatron_problem *problem, const char *const *names,
                      struct plan *given, struct galvatron_plan *given_theirs,
                      struct galvatron_rows *out, struct error *err);
void galvatron_rows_finish(struct galvatron_rows *rows);

/* The profile of the request's first device, made from Galvatron's measurements, so that our
 * searches, whose costs are those of instructions, choose by the same data. What changes: one layer
 * alone takes what was measured forward, and twice that backward; links have the bandwidth of the
 * largest group measured inside a host and across all devices. What was not measured (latencies,
 * the optimizer, embedding and head) is unchanged. */
struct profile galvatron_fit(const struct galvatron_profile *measured,
                             const struct planner_request *request);

#endif
