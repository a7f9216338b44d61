/* narrowed.h - a request for plans that Galvatron's formula knows: the roles batch, tensor and
 * tensor_seq, zero 0, 2 and 3, no or full recomputation, and 1F1B; and whatever the job forbids. */
#ifndef COORDINATOR_PLANNER_SEARCHES_NARROWED_H
#define COORDINATOR_PLANNER_SEARCHES_NARROWED_H

#include "coordinator/planner/costs/request.h"

struct narrowed {
    struct job_config job; /* a copy; shares its texts with the request's */
    struct planner_request request;
};

void narrowed_init(struct narrowed *narrowed, const struct planner_request *request);
void narrowed_finish(struct narrowed *narrowed);

#endif
