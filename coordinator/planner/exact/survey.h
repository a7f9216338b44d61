/* survey.h - the first look at a point: which choices its blocks have, and whether it has a hope.
 */
#ifndef COORDINATOR_PLANNER_EXACT_SURVEY_H
#define COORDINATOR_PLANNER_EXACT_SURVEY_H

#include "coordinator/planner/exact/instance.h"

/* The choices of all blocks, with what they take at least; those of the ends are left out where the
 * point is hopeless without them. Errors as of instance_init. */
int survey_choices(struct instance *instance, struct error *err);
/* Do the blocks between the ends take too long by themselves? Then early_s and early_simulated_s
 * are all that is known. */
bool survey_is_hopeless(const struct instance *instance);

#endif
