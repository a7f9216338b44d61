/* fit.h - a device profile made from Galvatron's measurements, so that our searches, whose costs
 * are those of instructions, choose by the same data. */
#ifndef COORDINATOR_PLANNER_GALVATRON_FIT_H
#define COORDINATOR_PLANNER_GALVATRON_FIT_H

#include "common/profile/galvatron.h"
#include "coordinator/planner/planner.h"

/* The profile of the request's first device with these changes: one layer alone takes what was
 * measured forward, and twice that backward; links have the bandwidth of the largest group measured
 * inside a host and across all devices. What was not measured (latencies, the optimizer, embedding
 * and head) is unchanged. */
struct profile galvatron_fit(const struct galvatron_profile *measured,
                             const struct planner_request *request);

#endif
