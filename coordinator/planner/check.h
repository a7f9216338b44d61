/* check.h - whether a job and a request make sense, before any search: model, paths, names and
 * pins.
 *
 * A search only learns of one plan after another that it is not possible, and could tell the reason
 * of the last one; here the number or the name that stands in the way is named. */
#ifndef COORDINATOR_PLANNER_CHECK_H
#define COORDINATOR_PLANNER_CHECK_H

#include "coordinator/planner/costs/request.h"

/* Build the graph of the job's model. The caller owns *out. -EINVAL if checkpoint.dir or
 * model.weights is a relative path; otherwise errors of model_build(). */
int planner_graph(const struct job_config *job, struct graph **out, struct error *err);
/* Check that every node finds the job's data in the same place. -EINVAL for a relative path, which
 * would depend on the directory a worker was started in. */
int planner_places(const struct job_config *job, struct error *err);
/* Check that the job can be trained. -ENOSYS: it can be planned but not trained yet; the message
 * says what is missing. */
int planner_runs(const struct job_config *job, const struct graph *graph, struct error *err);
/* Check the names in the job: the search, the schedule, and forbidden roles must exist. -EINVAL;
 * the message begins with the key. */
int planner_names(const struct job_config *job, struct error *err);
/* Check what no choice of devices could put right: the model and the names. -EINVAL. */
int planner_check(const struct job_config *job, struct error *err);

/* -EINVAL: the model, the batch or the number of devices rules out plan.pin; the message says which
 * number does, and what would be right. 0 does not mean that there is a plan. */
int pins_check(const struct planner_request *request, struct error *err);

#endif
