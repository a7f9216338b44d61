/* pins.h - whether anything can be as the job pins it, judged before a search begins.
 *
 * A search only learns of one plan after another that it is not possible, and could tell the reason
 * of the last one; here the number that stands in the way is named. */
#ifndef COORDINATOR_PLANNER_PINS_H
#define COORDINATOR_PLANNER_PINS_H

#include "coordinator/planner/planner.h"

/* -EINVAL: the model, the batch or the number of devices rules out plan.pin; the message says which
 * number does, and what would be right. 0 does not mean that there is a plan. */
int pins_check(const struct planner_request *request, struct error *err);

#endif
