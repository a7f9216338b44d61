/* survey.h - the first look at a point: which choices its blocks have, and whether the point has
 * any chance. */
#ifndef COORDINATOR_PLANNER_EXACT_SURVEY_H
#define COORDINATOR_PLANNER_EXACT_SURVEY_H

#include "coordinator/planner/exact/instance.h"

/* Survey the choices of all blocks with their lower bounds; those of the end blocks are left out if
 * the point is hopeless without them. Errors as of instance_init(). */
int survey_choices(struct instance *instance, struct error *err);
/* Whether the blocks between the ends already take too long. If so, only early_s and
 * early_simulated_s are known. */
bool survey_is_hopeless(const struct instance *instance);

#endif
