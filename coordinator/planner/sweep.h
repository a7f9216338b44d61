/* sweep.h - what searches have in common that solve one point of the space after the other: the
 * points in the order of their bounds, and the best plans confirmed by simulation. */
#ifndef COORDINATOR_PLANNER_SWEEP_H
#define COORDINATOR_PLANNER_SWEEP_H

#include "coordinator/planner/exact/instance.h"

struct sweep {
    const char *name; /* of the search */
    int stages_max;   /* points with more are left out; 0: with any number */
    /* A plan of the point that fits, which is the caller's, or NULL. */
    struct plan *(*solve)(struct instance *instance);
};

/* Append the best plans. -EINVAL: there is no legal plan. -ENOSPC: none was found that fits. */
int sweep_run(const struct planner_request *request, const struct sweep *sweep,
              struct planner_result *out, struct error *err);

/* The plan whose stage i has the blocks before ends[i] that no stage before it has. */
struct plan *sweep_plan(const struct instance *instance, const int *ends,
                        const struct strategy *strategies);
/* Seconds of its step by the formula; infinity if it does not fit or cannot be evaluated. */
double sweep_judge(const struct instance *instance, const struct plan *plan);

#endif
