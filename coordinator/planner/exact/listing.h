/* listing.h - the list of points that a hunt works through, and its order. */
#ifndef COORDINATOR_PLANNER_EXACT_LISTING_H
#define COORDINATOR_PLANNER_EXACT_LISTING_H

#include "coordinator/planner/exact/hunt.h"

/* List the points on `least` to `most` devices in the order of their bounds; the caller has freed
 * the previous list. If there are too many, only numbers of whole hosts and even divisions are
 * listed. Points whose stages no blocks can be divided by are left out. */
void listing_points(struct hunt *hunt, int least, int most);
/* Add the points that were left out and whose bounds are below the best; the others are accounted
 * for in hunt->unlisted_s. `most` as before. Does nothing the second time. Reorders the points. */
void listing_rest(struct hunt *hunt, int most);
/* Forget what was learned of the points, whose order stays. */
void listing_again(struct hunt *hunt);
/* Sort by the scouts' estimates, most promising first, then by bounds. */
void listing_sort(struct hunt *hunt);
/* qsort() order of struct hunt_point by bound. */
int listing_by_bound(const void *first, const void *second);

#endif
