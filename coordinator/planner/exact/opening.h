/* opening.h - searches one point of a hunt: relaxed, as if memory were unlimited, and then with the
 * memory there is.
 *
 * What is learned of a point raises its bounds; plans that are found go to the hunt. */
#ifndef COORDINATOR_PLANNER_EXACT_OPENING_H
#define COORDINATOR_PLANNER_EXACT_OPENING_H

#include "coordinator/planner/exact/hunt.h"

/* Whether no plan of the point can be good enough, or another point covers it. */
bool opening_is_hopeless(const struct hunt *hunt, const struct hunt_point *at);
/* Whether it still has to be relaxed; and whether, relaxed, it still has to be closed. */
bool opening_is_due(const struct hunt *hunt, const struct hunt_point *at);
bool opening_is_open(const struct hunt *hunt, const struct hunt_point *at);
/* Tighten its bounds without searching it, which takes some time. */
void opening_bound(struct hunt *hunt, struct hunt_point *at);
/* Search it relaxed. It is closed at once if even the best plan with unlimited memory is too slow,
 * or if the fastest plan fits. Returns true if the point is legal; otherwise *rc and err may say
 * why not. */
bool opening_relax(struct hunt *hunt, struct hunt_point *at, int *rc, struct error *err);
/* Tighten its bounds by the strategies of its blocks alone. */
void opening_survey(struct hunt *hunt, struct hunt_point *at);
/* Search it with all strategies and the memory there is. */
void opening_close(struct hunt *hunt, struct hunt_point *at);
/* Search it again with higher limits of labels, choices and pairs of ties, for plans better than
 * the best. */
void opening_deepen(struct hunt *hunt, struct hunt_point *at);
/* Whether everything to be learned of the point is learned from another one. */
bool opening_is_covered(const struct hunt *hunt, const struct hunt_point *at);

#endif
