/* shared_cores.h - devices that are made of the same cores, as a plan finds them.
 *
 * Where a host has fewer cores than devices, a device is as fast as its profile says only while no
 * other rank computes on its cores. All ranks of a job compute at the same time, so a device is as
 * many times slower as there are ranks on its cores: those of the plan, which uses the first
 * devices of a request, and those of other jobs. */
#ifndef COORDINATOR_PLANNER_COSTS_SHARED_CORES_H
#define COORDINATOR_PLANNER_COSTS_SHARED_CORES_H

#include "common/plan/plan.h"
#include "coordinator/planner/costs/request.h"

struct shared_cores {
    struct planner_device *devices; /* [count], owned, with profiles that count everybody */
    int count;
    struct profile *profiles; /* each distinct one once */
    int profile_count;
};

/* The first `count` devices, while a plan uses exactly these. Lends what the devices point to. */
void shared_cores_init(struct shared_cores *used, const struct planner_device *devices, int count);
/* The request, for these devices alone. Lends them. */
struct planner_request shared_cores_ask(const struct planner_request *request,
                                        const struct shared_cores *used);
/* Accepts a zeroed one. */
void shared_cores_finish(struct shared_cores *used);

/* The largest number of devices up to `most` for which these are as fast as with `least`: a search
 * takes a device to be equally fast in all plans. */
int shared_cores_end(const struct planner_request *request, int least, int most);
/* The planner places rank r on device r of a request. *out: the devices that the plan names, in
 * rank order, as they are while it uses exactly these; finished by the caller in any case. -ESTALE
 * if one is missing or there are too few. */
int shared_cores_order(const struct planner_request *request, const struct plan *plan,
                       struct shared_cores *out, struct error *err);

#endif
