/* deepening.h - searches points again with higher limits if labels were cut off there, as long as
 * this is what the certificate lacks. */
#ifndef COORDINATOR_PLANNER_EXACT_DEEPENING_H
#define COORDINATOR_PLANNER_EXACT_DEEPENING_H

#include "coordinator/planner/exact/hunt.h"

/* The hunt's points must have been opened. */
void deepening_run(struct hunt *hunt);

#endif
