/* closing.h - the gap of a small space closed: every plan whose own bound is below the best
 * simulated step is simulated too, least bound first. */
#ifndef COORDINATOR_PLANNER_EXACT_CLOSING_H
#define COORDINATOR_PLANNER_EXACT_CLOSING_H

#include "coordinator/planner/exact/hunt.h"

/* Are there so few plans that all can be walked through? */
bool closing_is_small(struct hunt *hunt);
/* Appends what is better than *best_s, which then is that, and raises *least_s, which no plan is
 * shorter than, as far as the hunt's limits go. */
int closing_run(struct hunt *hunt, double *best_s, double *least_s, struct planner_result *out,
                struct error *err);

#endif
