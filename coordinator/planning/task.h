/* task.h - what a plan is to be made of: a job's model, and devices as they are now.
 *
 * A task owns all that the search reads, so that it may run on another thread than the one whose
 * membership the devices are of. */
#ifndef COORDINATOR_PLANNING_TASK_H
#define COORDINATOR_PLANNING_TASK_H

#include "coordinator/planning/fleet.h"

#include <stdatomic.h>

struct planning_request {
    struct job_config *job;
    struct graph *graph;
    const char *given;   /* (optional) JSON of a plan to be priced in place of a search */
    const char *present; /* (optional) ... of one to be priced beside it */
    bool picture;        /* of the given plan's step, in place of all else */
    const struct device_view *devices;
    size_t device_count;
    unsigned devices_max; /* that the job may have, one day */
    enum planning_cost cost;
    bool hurry;                 /* the job's executors stand still meanwhile */
    uint64_t (*clock_cb)(void); /* milliseconds; called on the thread that searches */
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
    atomic_bool stop; /* any thread may set it: nobody wants the plan any more */
    int refusal;      /* a device has no speed: a negative errno and a sentence */
    struct error refusal_words;
};

/* Takes the request's job and graph, and copies the rest. */
struct planning_task *planning_task_create(const struct planning_request *request);
/* Accepts NULL. */
void planning_task_destroy(struct planning_task *task);

#endif
