/* planner.h - finds the fastest way to divide a model over devices within their memory.
 *
 * A candidate is a complete plan. It is lowered to one program per rank; the largest reservation of
 * these programs is its memory, and the simulated step under the devices' profiles is its time.
 * Searches form a family: one file each in searches/, one row each in searches.c.
 *
 * The planner is pure: it reads no clock and does no I/O. */
#ifndef COORDINATOR_PLANNER_PLANNER_H
#define COORDINATOR_PLANNER_PLANNER_H

#include "coordinator/planner/costs/candidates.h"

/* Search as the job demands. On success result->best is the answer.
 *
 * -EINVAL: an unknown name, or no legal plan. -ENOSPC: there are candidates, but none fits; the
 * message names the smallest change that would help. -ECANCELED: stopped. The caller finishes the
 * result in every case; after -ENOSPC and -ECANCELED it may hold candidates. */
int planner_run(const struct planner_request *request, struct planner_result *out,
                struct error *err);
/* Judge this plan instead of searching; its ranks run on the devices that it names. -ESTALE: some
 * of them are not in the request. -EINVAL: the plan does not match the model or the global batch.
 * -ENOSPC: it does not fit. Takes ownership of the plan, and the caller finishes the result, in
 * every case. */
int planner_given(const struct planner_request *request, struct plan *plan,
                  struct planner_result *out, struct error *err);

#endif
