/* resources.h - nodes, jobs and events as JSON: what `-o json` prints and the HTTP API answers.
 *
 * The contract with programs of others: every object has "apiVersion": "gimbal/v1" and a "kind";
 * sizes are bytes, times seconds, and what JSON has no number for is null. Members may come, none
 * goes. All objects are yours. */
#ifndef COORDINATOR_RESOURCES_RESOURCES_H
#define COORDINATOR_RESOURCES_RESOURCES_H

#include "proto/cluster.pb-c.h"
#include "proto/coordinator.pb-c.h"
#include "proto/job.pb-c.h"

#include <jansson.h>
#include <stdbool.h>

/* A new object with apiVersion and kind, and the members of `members`, which it takes. */
json_t *resource_object(const char *kind, json_t *members);
/* {kind, member: items}; takes the items. */
json_t *resource_list(const char *kind, const char *member, json_t *items);
/* null for what JSON has no number for: the loss of a training that diverged. */
json_t *resource_number(double number);

/* What common/hardware writes of a recorded node, and how the node is now. */
json_t *resource_node(const Gimbal__NodeStatus *node);
json_t *resource_job(const Gimbal__JobStatus *job);
json_t *resource_checkpoint(const Gimbal__Checkpoint *checkpoint);
json_t *resource_times(const Gimbal__InstructionTimes *times);
json_t *resource_event(const Gimbal__Event *event);

/* "ALIVE", "RUNNING" */
const char *resource_node_state(Gimbal__NodeStatus__State state);
const char *resource_job_state(Gimbal__JobStatus__State state);
/* Done, failed or cancelled: nothing will change any more. */
bool resource_job_is_over(Gimbal__JobStatus__State state);
/* That are left at the measured step time; 0 when that is not known. */
double resource_job_seconds_left(const Gimbal__JobStatus *job);

#endif
