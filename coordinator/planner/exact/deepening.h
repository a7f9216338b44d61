/* deepening.h - points whose plans were not all looked at, because labels were cut off: again, with
 * more of them, as long as that is what a certificate lacks. */
#ifndef COORDINATOR_PLANNER_EXACT_DEEPENING_H
#define COORDINATOR_PLANNER_EXACT_DEEPENING_H

#include "coordinator/planner/exact/hunt.h"

/* Of a hunt whose points have been opened. */
void deepening_run(struct hunt *hunt);

#endif
