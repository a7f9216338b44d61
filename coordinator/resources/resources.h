/* resources.h - nodes, jobs and events as JSON: the output of `-o json` and of the HTTP API.
 *
 * This is a contract with other programs: every object has "apiVersion": "gimbal/v1" and a "kind";
 * sizes are bytes, times are seconds, and values without a JSON number are null. Members may be
 * added but never removed. The caller owns all returned objects. */
#ifndef COORDINATOR_RESOURCES_RESOURCES_H
#define COORDINATOR_RESOURCES_RESOURCES_H

#include "coordinator/picture/picture.h"
#include "proto/cluster.pb-c.h"
#include "proto/coordinator.pb-c.h"
#include "proto/job.pb-c.h"

#include <jansson.h>
#include <stdbool.h>

/* A new object with apiVersion, kind, and the members of `members`, of which it takes ownership. */
json_t *resource_object(const char *kind, json_t *members);
/* {kind, member: items}; takes ownership of the items. */
json_t *resource_list(const char *kind, const char *member, json_t *items);
/* null if JSON has no such number, like the loss of a training that diverged. */
json_t *resource_number(double number);

/* What common/hardware writes of a recorded node, and the node's current state. */
json_t *resource_node(const Gimbal__NodeStatus *node);
json_t *resource_job(const Gimbal__JobStatus *job);
json_t *resource_checkpoint(const Gimbal__Checkpoint *checkpoint);
json_t *resource_times(const Gimbal__InstructionTimes *times);
json_t *resource_event(const Gimbal__Event *event);

/* As in "ALIVE", "RUNNING". */
const char *resource_node_state(Gimbal__NodeStatus__State state);
const char *resource_job_state(Gimbal__JobStatus__State state);
/* Done, failed or cancelled: nothing changes any more. */
bool resource_job_is_over(Gimbal__JobStatus__State state);
/* Remaining time at the measured step time; 0 if unknown. */
double resource_job_seconds_left(const Gimbal__JobStatus *job);

/* A picture as JSON: ranks with the boxes of a step, as predicted and as measured in the newest
 * step. Each side has its length and bubble and counts what is left out. A missing side is null,
 * and its reason says why. */
struct resource_timeline {
    const char *job, *plan; /* "": it has none */
    uint64_t epoch;
    int rank_count;
    bool pending;                        /* the picture is being made */
    const struct picture *picture;       /* NULL: there is none, or none yet */
    const char *predicted_why;           /* "": there is a prediction */
    const struct picture_side *measured; /* NULL: there is none */
    const char *measured_why;
    uint64_t step; /* the measured step, and when it began */
    double unix_s;
};

/* The caller owns it. */
json_t *resource_timeline(const struct resource_timeline *of);

#endif
