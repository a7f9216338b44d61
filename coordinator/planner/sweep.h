/* sweep.h - the common part of searches that solve the points of the space one by one: visits the
 * points in the order of their lower bounds and confirms the best plans by simulation. */
#ifndef COORDINATOR_PLANNER_SWEEP_H
#define COORDINATOR_PLANNER_SWEEP_H

#include "coordinator/planner/exact/instance.h"

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

#endif
