/* dump.h - a planning problem under the formula of evaluate.h as JSON: all that another program
 * needs to solve it independently. The format is described at the top of dump.c. */
#ifndef COORDINATOR_PLANNER_DUMP_H
#define COORDINATOR_PLANNER_DUMP_H

#include "coordinator/planner/costs/request.h"

#include <stdio.h>

/* Write all points that the job allows, without pruning, with every device as fast as when all are
 * used. -EINVAL: there are too many costs to write, or no point. -EIO: the file cannot be
 * written. */
int planner_dump(const struct planner_request *request, FILE *out, struct error *err);

#endif
