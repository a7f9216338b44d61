/* task.h - the input of planning: a job's model, and devices as they are now.
 *
 * A task owns everything the search reads, so it can run on another thread than the one that owns
 * the membership of the devices. */
#ifndef COORDINATOR_PLANNING_TASK_H
#define COORDINATOR_PLANNING_TASK_H

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

#endif
