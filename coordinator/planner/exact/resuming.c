/* resuming.c - picks the next point to resume: the one with the least bound. */
#include "coordinator/planner/exact/resuming.h"

#include "coordinator/planner/exact/opening.h"

#include <math.h>

/* If a point's best plan by the formula is known, there is nothing left to learn. */
static bool is_left(const struct hunt *hunt, const struct hunt_point *at)
{
    return !at->found && !at->resumed && at->bound.simulated_s < hunt->simulated_s &&
           !opening_is_hopeless(hunt, at);
}

static struct hunt_point *find_least(const struct hunt *hunt)
{
    struct hunt_point *least = NULL;
    for (size_t i = 0; i < hunt->point_count; i++) {
        struct hunt_point *at = &hunt->points[i];
        if (is_left(hunt, at) && (!least || at->bound.formula_s < least->bound.formula_s))
            least = at;
    }
    return least;
}

static void search_again(struct hunt *hunt, struct hunt_point *at)
{
    int ignored = 0;
    at->resumed = true;
    at->closed = false;
    opening_relax(hunt, at, &ignored, NULL);
    if (opening_is_open(hunt, at))
        opening_close(hunt, at);
}

bool resuming_next(struct hunt *hunt, double simulated_s)
{
    size_t count = hunt->found_count;
    if (isinf(hunt->simulated_s))
        hunt->before = hunt->costs.lowered;
    hunt->simulated_s = fmin(hunt->simulated_s, simulated_s);
    while (hunt->found_count == count && !hunt_is_enough(hunt)) {
        struct hunt_point *at = find_least(hunt);
        if (!at || hunt->costs.lowered - hunt->before >= hunt->limits.resumed)
            return false;
        search_again(hunt, at);
    }
    return hunt->found_count > count;
}
