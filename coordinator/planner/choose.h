/* choose.h - which of the plans that a search found is the answer.
 *
 * A search ranks plans by the time of a step. But a plan that leaves state on a single node also
 * spends time on copies of it (safety.h), which one that is a little slower may not need. */
#ifndef COORDINATOR_PLANNER_CHOOSE_H
#define COORDINATOR_PLANNER_CHOOSE_H

#include "coordinator/planner/planner.h"

/* Order the candidates by the job's objective, and put first the one that is best with its copies;
 * what was proved of the fastest one is then told of it. Fills in result->safety. There must be a
 * candidate. */
void choose_best(const struct planner_request *request, struct planner_result *result);

#endif
