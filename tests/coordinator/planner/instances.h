/* instances.h - small planning problems drawn from a seed. */
#ifndef TESTS_COORDINATOR_PLANNER_INSTANCES_H
#define TESTS_COORDINATOR_PLANNER_INSTANCES_H

#include "coordinator/planner/planner.h"

#define DRAWN_DEVICES_MAX 4

struct drawn {
    uint64_t seed;
    struct job_config *job;
    struct graph *graph;
    struct profile profiles[2];
    struct planner_device machines[DRAWN_DEVICES_MAX];
    struct planner_request request;
    int devices; /* plans are to be for just so many */
};

/* A model of one to three layers, some roles, zeros and recomputations forbidden, devices of one
 * or two speeds on one or two hosts, and memory for all plans, for some or for none. */
void drawn_init(struct drawn *drawn, uint64_t seed);
void drawn_finish(struct drawn *drawn);

#endif
