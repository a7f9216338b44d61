/* planning.h - from a job and the devices it was granted to a plan, ready to be assigned.
 *
 * Between the planner, which knows names, memory and profiles, and the cluster, which knows
 * workers and their reports. Pure, but for the clock that it is given to time the search. */
#ifndef COORDINATOR_PLANNING_PLANNING_H
#define COORDINATOR_PLANNING_PLANNING_H

#include "coordinator/membership/devices.h"
#include "coordinator/planner/planner.h"

/* Where a device's speed comes from. */
enum planning_cost {
    PLANNING_BEST,     /* what its probe measured, else its peak rates */
    PLANNING_MEASURED, /* a device without a profile is refused */
    PLANNING_ANALYTIC, /* its peak rates, whatever was measured */
};

struct planning_request {
    const struct job_config *job;
    const struct graph *graph;
    const char *given; /* (optional) JSON of a plan to be priced in place of a search */
    const struct device_view *devices;
    size_t device_count;
    unsigned devices_max; /* that the job may have, one day */
    enum planning_cost cost;
    uint64_t (*clock_cb)(void); /* milliseconds */
};

struct planning {
    struct plan *plan;
    char *json;                 /* of the plan */
    char *candidates;           /* planner_print()'s table, also when none fits */
    uint64_t *hashes;           /* of each rank's program */
    struct device_ref *devices; /* of each rank */
    size_t rank_count;
    /* After -ENOSPC: so many such devices would do, more than there were; 0: none would that the
     * job may have. */
    unsigned devices_needed;
};

/* "best" (or ""), "measured", "analytic"; -EINVAL in words. */
int planning_cost_parse(const char *text, enum planning_cost *cost, struct error *err);

/* 0: *out is whole. -ENOSPC, -EINVAL: as planner_run; the sentence is the planner's, or says
 * which device has no speed. Either way *out is yours to finish. */
int planning_run(const struct planning_request *request, struct planning *out, struct error *err);
void planning_finish(struct planning *planning);

#endif
