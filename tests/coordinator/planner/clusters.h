/* clusters.h - jobs and clusters drawn from a seed, of which exact cannot look at all plans. */
#ifndef TESTS_COORDINATOR_PLANNER_CLUSTERS_H
#define TESTS_COORDINATOR_PLANNER_CLUSTERS_H

#include "coordinator/planner/planner.h"

#define CLUSTER_DEVICES_MAX 8

struct cluster {
    struct job_config *job;
    struct graph *graph;
    struct profile profiles[3];
    struct planner_device devices[CLUSTER_DEVICES_MAX];
    struct planner_request request;
};

/* A model of one to `layers` layers, two to `devices` devices on one to three hosts and of one to
 * three speeds, fast or slow links, and memory for all plans, for some or for none. Each device is
 * a node. No copies of state are made, so that the answer is the fastest plan. */
void cluster_init(struct cluster *cluster, uint64_t seed, int layers, int devices);
void cluster_finish(struct cluster *cluster);
/* Seconds of a step of the plan that the request gets; infinity: none fits, or none is legal. */
double cluster_step(const struct planner_request *request);

#endif
