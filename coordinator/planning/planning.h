/* planning.h - from a job and the devices it was granted to a plan that is ready to be assigned.
 *
 * It connects the planner, which knows names, memory and profiles, with the cluster, which knows
 * workers and their reports. Pure, except for the clock passed in to time the search.
 *
 * A task owns everything the search reads, so it can run on another thread than the one that owns
 * the membership of the devices. */
#ifndef COORDINATOR_PLANNING_PLANNING_H
#define COORDINATOR_PLANNING_PLANNING_H

#include "coordinator/picture/picture.h"
#include "coordinator/planner/costs/safety.h"
#include "coordinator/planning/fleet.h"

#include <stdatomic.h>

struct planning_request {
    struct job_config *job;
    struct graph *graph;
    const char *given;   /* (optional) JSON of a plan to price instead of searching */
    const char *present; /* (optional) JSON of a plan to price for comparison */
    bool picture;        /* draw a step of the given plan instead of everything else */
    const struct device_view *devices;
    size_t device_count;
    unsigned devices_max; /* devices that the job may ever have */
    enum planning_cost cost;
    bool hurry;                 /* the job's executors are idle meanwhile */
    uint64_t (*clock_cb)(void); /* milliseconds; called on the searching thread */
};

struct planning_task {
    struct job_config *job;
    struct graph *graph;
    char *given, *present;
    bool picture;
    struct fleet fleet;
    unsigned devices_max;
    bool hurry;
    uint64_t (*clock_cb)(void);
    atomic_bool stop; /* any thread may set it when the plan is no longer wanted */
    int refusal;      /* a negative errno, with a message, if a device has no speed; otherwise 0 */
    struct error refusal_words;
};

/* Takes ownership of the request's job and graph, and copies the rest. */
struct planning_task *planning_task_create(const struct planning_request *request);
/* Accepts NULL. */
void planning_task_destroy(struct planning_task *task);

struct planning {
    struct plan *plan;
    char *json;                 /* JSON of the plan */
    char *candidates;           /* the table of candidates_print(), also if no plan fits */
    uint64_t *hashes;           /* [rank]: hash of its program */
    struct device_ref *devices; /* [rank]: its device */
    /* [rank]: predicted seconds of all kernels of a step if its device were not slow */
    double *compute_s;
    double *slowdowns; /* [rank]: slowdown of its device at planning time */
    double *networks;  /* [rank]: seconds per byte from its device to other hosts, as planned */
    size_t rank_count;
    struct safety safety;
    struct picture *picture; /* if the task asks for one; then nothing else is filled in */
    /* Step time with the plan to be priced for comparison, and time of its copies; 0: unknown. */
    double present_s, present_copy_s;
    /* After -ENOSPC: the number of devices of this kind that would do, more than there were; 0: no
     * number that the job may have would. */
    unsigned devices_needed;
};

/* Run a task. -ENOSPC, -EINVAL: as planner_run(), with the planner's message or one that names the
 * device of unknown speed. -ECANCELED: the task was stopped. The caller finishes *out in any
 * case. */
int planning_run(const struct planning_task *task, struct planning *out, struct error *err);
void planning_finish(struct planning *planning);

#endif
