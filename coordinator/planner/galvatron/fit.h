/* fit.h - a device as Galvatron's profile has measured it, so that searches, whose costs
 * are those of instructions, choose by the same measurements. */
#ifndef COORDINATOR_PLANNER_GALVATRON_FIT_H
#define COORDINATOR_PLANNER_GALVATRON_FIT_H

#include "common/profile/galvatron.h"
#include "coordinator/planner/planner.h"

/* The first device of the request, with these changes: one layer alone takes what was measured,
 * forward, and twice that backward; links have the bandwidth of the largest group that was measured
 * inside a host, and of all devices. What was not measured (latencies, the optimizer, embedding and
 * head) stays. */
struct profile galvatron_fit(const struct galvatron_profile *measured,
                             const struct planner_request *request);

#endif
