/* searches.h - the family of searches: one file and one row each. */
#ifndef COORDINATOR_PLANNER_SEARCHES_SEARCHES_H
#define COORDINATOR_PLANNER_SEARCHES_SEARCHES_H

#include "coordinator/planner/costs/candidates.h"
#include "coordinator/planner/exact/instance.h"

struct search {
    const char *name;
    /* Append candidates to `out`. -EINVAL: no division satisfies the job's demands; the message
     * tells of the last one tried. */
    int (*run)(const struct planner_request *request, struct planner_result *out,
               struct error *err);
};

extern const struct search *const searches[]; /* in order of preference; ends with NULL */
/* The search of this name, which is that of a job's plan.search, or the first one if it is NULL.
 * NULL: there is none. */
const struct search *search_find(const char *name);

/* The common part of searches that solve the points of the space one by one: visits the points in
 * the order of their lower bounds and confirms the best plans by simulation. */
struct sweep {
    const char *name; /* of the search, for messages */
    int stages_max;   /* skip points with more stages; 0: no limit */
    /* A plan for the instance's point that fits, owned by the caller; NULL if none is found. */
    struct plan *(*solve)(struct instance *instance);
};

/* Append the best plans. -EINVAL: there is no legal plan. -ENOSPC: no plan that fits was found. */
int sweep_run(const struct planner_request *request, const struct sweep *sweep,
              struct planner_result *out, struct error *err);

/* Build a plan from the instance's point: ends[i] is the index after the last block of stage i, and
 * strategies are indexed by block. The caller owns it. */
struct plan *sweep_plan(const struct instance *instance, const int *ends,
                        const struct strategy *strategies);
/* Seconds of a step by the formula of evaluate.h; infinity if the plan does not fit or cannot be
 * evaluated. */
double sweep_judge(const struct instance *instance, const struct plan *plan);
/* Seconds that a part adds to the stage's step, and bytes that stay in use after its forward. */
double sweep_seconds(const struct instance *instance, const struct part_cost *cost);
uint64_t sweep_bytes(const struct instance *instance, int stage, const struct part_cost *cost);

#endif
