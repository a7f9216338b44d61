/* dump.h - a planning problem under the formula (evaluate.h) as JSON: all that a second program
 * needs to solve it for itself. The form is at the top of dump.c. */
#ifndef COORDINATOR_PLANNER_REPORT_DUMP_H
#define COORDINATOR_PLANNER_REPORT_DUMP_H

#include "coordinator/planner/planner.h"

#include <stdio.h>

/* All points that the job allows, without pruning anything. -EINVAL: there are too many costs to
 * write down, or no point. -EIO: the file cannot be written. */
int planner_dump(const struct planner_request *request, FILE *out, struct error *err);

#endif
