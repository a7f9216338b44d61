/* planning.h - from a job and the devices it was granted to a plan, ready to be assigned.
 *
 * Between the planner, which knows names, memory and profiles, and the cluster, which knows
 * workers and their reports. Pure, but for the clock that it is given to time the search. */
#ifndef COORDINATOR_PLANNING_PLANNING_H
#define COORDINATOR_PLANNING_PLANNING_H

#include "coordinator/picture/picture.h"
#include "coordinator/planning/safety.h"
#include "coordinator/planning/task.h"

struct planning {
    struct plan *plan;
    char *json;                 /* of the plan */
    char *candidates;           /* planner_print()'s table, also when none fits */
    uint64_t *hashes;           /* of each rank's program */
    struct device_ref *devices; /* of each rank */
    double *compute_s;          /* of each rank: all kernels of a step, were its device not slow */
    double *slowdowns;          /* of each rank's device, when it was planned */
    double *networks;           /* seconds per byte from there to other hosts, as it was planned */
    size_t rank_count;
    struct safety safety;
    struct picture *picture; /* where the task asks for that, and then nothing else is there */
    /* A step with the plan that was to be priced beside it, and its copies; 0: not known. */
    double present_s, present_copy_s;
    /* After -ENOSPC: so many such devices would do, more than there were; 0: none would that the
     * job may have. */
    unsigned devices_needed;
};

/* 0: *out is whole. -ENOSPC, -EINVAL: as planner_run; the sentence is the planner's, or says
 * which device has no speed. -ECANCELED: the task was stopped. Either way *out is yours to finish.
 */
int planning_run(const struct planning_task *task, struct planning *out, struct error *err);
void planning_finish(struct planning *planning);

#endif
