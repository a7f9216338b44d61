/* goal.h - a target placement, and a lower bound on the cost of any path to it. The search in
 * redistribute.c uses the bound to leave out states that cannot lead to a cheaper path. */
#ifndef COMMON_PLACEMENT_GOAL_H
#define COMMON_PLACEMENT_GOAL_H

#include "common/placement/placement.h"

/* What each axis does in a placement: it splits dim i (i), holds partial sums (DIMS_MAX), or
 * replicates (-1). */
struct duties {
    int8_t of[AXES_MAX];
};

/* Products of axis sizes: the pieces along each dim; the replicas (idle); and the ranks whose
 * partial sums have yet to be reduced, because the goal is not partial over their axes
 * (pending). */
struct cuts {
    int64_t parts[DIMS_MAX], idle, pending;
};

/* Where a placement stands relative to a goal. */
struct standing {
    struct duties duties;
    struct cuts cuts;
};

struct goal {
    const struct mesh *mesh;
    const struct shape *shape;
    const struct placement *at;
    struct duties duties;
    struct cuts cuts;
    int64_t elements; /* of all ranks' pieces in the goal together */
    int64_t whole;    /* of all ranks together if each held the whole tensor */
    int64_t ranks;
    int64_t step_price; /* the fixed price of one step, in words over all ranks */
};

/* The arguments are borrowed for as long as the goal is used. */
struct goal goal_of(const struct mesh *mesh, const struct shape *shape, const struct placement *at);
struct standing goal_standing(const struct goal *goal, const struct placement *placement);
/* A lower bound on the cost of the remaining path, counted like redistribute_path() does: words
 * plus the price of the steps. */
int64_t goal_least_rest(const struct goal *goal, const struct standing *at);
/* The result of placement_divides() for the placement that stands here. */
bool goal_divides(const struct goal *goal, const struct standing *at);

#endif
