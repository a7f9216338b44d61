/* listing.h - which points a hunt may open, and in which order: the list that it works through. */
#ifndef COORDINATOR_PLANNER_EXACT_LISTING_H
#define COORDINATOR_PLANNER_EXACT_LISTING_H

#include "coordinator/planner/exact/hunt.h"

/* Sets the points on `least` to `most` devices, by their bounds; the list before is the caller's to
 * free. All of them, or where those are too many, of whole hosts the even ones. */
void listing_points(struct hunt *hunt, int least, int most);
/* Adds those that were too many, where their bounds are below the best; the others lower the
 * hunt's least_s. `most` as before; it is done once. Points move, as by listing_sort. */
void listing_rest(struct hunt *hunt, int most);
/* Where scouts have been, the most hopeful first; then by bounds. */
void listing_sort(struct hunt *hunt);
/* For qsort: points by their bounds. */
int listing_by_bound(const void *first, const void *second);

#endif
