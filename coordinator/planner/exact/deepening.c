/* deepening.c - takes the point with the least bound first: either what was cut off there contains
 * a better plan, or its bound rises, and with it the bound of the whole space.
 *
 * If the least bound belongs to a point that was not opened, more labels elsewhere prove
 * nothing. */
#include "coordinator/planner/exact/deepening.h"

#include "coordinator/planner/exact/opening.h"

/* With eight times the ties, or twice the labels, this many times as many pairs of labels. */
#define GROWTH 8
/* at this depth nothing is cut off any more */
#define DEPTH_MAX 16

static struct hunt_point *find_least(struct hunt *hunt)
{
    struct hunt_point *least = NULL;
    for (size_t i = 0; i < hunt->point_count; i++) {
        struct hunt_point *at = &hunt->points[i];
        if (!at->too_small && !opening_is_covered(hunt, at) &&
            (!least || at->bound.formula_s < least->bound.formula_s))
            least = at;
    }
    return least;
}

void deepening_run(struct hunt *hunt)
{
    double joined = 0;
    while (!hunt_is_enough(hunt)) {
        struct hunt_point *at = find_least(hunt);
        if (!at || !at->closed || at->depth == DEPTH_MAX ||
            at->bound.formula_s * (1 + hunt->limits.near) >= hunt->best_s ||
            joined + (at->depth > 0 ? GROWTH : 1) * at->joined > hunt->limits.joins)
            return;
        opening_deepen(hunt, at);
        joined += at->joined;
    }
}
