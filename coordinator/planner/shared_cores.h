/* shared_cores.h - devices that are made of the same cores, as a plan finds them.
 *
 * Where a host has fewer cores than devices, a device is as fast as its profile says only while no
 * other rank computes on its cores. All ranks of a job compute at the same time, so a device is as
 * many times slower as there are ranks on its cores: those of the plan, which uses the first
 * devices of a request, and those of other jobs. */
#ifndef COORDINATOR_PLANNER_SHARED_CORES_H
#define COORDINATOR_PLANNER_SHARED_CORES_H

#include "coordinator/planner/planner.h"

struct shared_cores {
    struct planner_device *devices; /* [count], owned, with profiles that count everybody */
    int count;
    struct profile *profiles; /* each distinct one once */
    int profile_count;
};

/* The first `count` devices, while a plan uses exactly these. Lends what the devices point to. */
void shared_cores_init(struct shared_cores *used, const struct planner_device *devices, int count);
/* Accepts a zeroed one. */
void shared_cores_finish(struct shared_cores *used);

/* Run a search. Numbers of devices between which the speed of a device differs are searched one by
 * one, and what is proved of the best plan is what holds for all of them. Errors as in struct
 * search, of the last number tried. */
int shared_cores_search(const struct search *search, const struct planner_request *request,
                        struct planner_result *out, struct error *err);

#endif
