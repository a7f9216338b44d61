/* opening.h - to search a point of a hunt: relaxed, as if memory were no object, and as it is.
 *
 * What is learnt of a point raises its bound; a plan that is found goes to the hunt. */
#ifndef COORDINATOR_PLANNER_EXACT_OPENING_H
#define COORDINATOR_PLANNER_EXACT_OPENING_H

#include "coordinator/planner/exact/hunt.h"

/* Can no plan of the point be good enough, or better than those of another? */
bool opening_is_hopeless(const struct hunt *hunt, const struct hunt_point *at);
/* Is it still to be relaxed; and after that, still to be closed? */
bool opening_is_due(const struct hunt *hunt, const struct hunt_point *at);
bool opening_is_open(const struct hunt *hunt, const struct hunt_point *at);
/* What is known of it without searching it, and takes some time to find out. */
void opening_bound(struct hunt *hunt, struct hunt_point *at);
/* A point whose best is too slow with all the memory there could be is done with, and so is one
 * whose fastest plan fits. True: it is legal; else *rc and err may say why not. */
bool opening_relax(struct hunt *hunt, struct hunt_point *at, int *rc, struct error *err);
/* With all strategies and memory as it is. */
void opening_close(struct hunt *hunt, struct hunt_point *at);
/* Again, with twice the labels, choices and pairs of ties; only better plans than the best. */
void opening_deepen(struct hunt *hunt, struct hunt_point *at);
/* Is what is to be learnt of the point learnt of another one? */
bool opening_is_covered(const struct hunt *hunt, const struct hunt_point *at);

#endif
