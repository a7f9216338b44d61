/* goal.h - a placement that is to be reached, and what any way to it costs at least: for the search
 * of redistribute.c, which leaves out what cannot pay. */
#ifndef COMMON_PLACEMENT_GOAL_H
#define COMMON_PLACEMENT_GOAL_H

#include "common/placement/placement.h"

/* What an axis does in a placement: it splits dim i, or is partial, or in neither. */
struct duties {
    int8_t of[AXES_MAX];
};

/* How a placement cuts: the ranks along each dim, of the axes in neither, and of those over which
 * sums have yet to be finished. */
struct cuts {
    int64_t parts[DIMS_MAX], idle, pending;
};

/* How a placement stands to a goal. */
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
    int64_t elements; /* of all ranks' pieces there */
    int64_t whole;    /* of all ranks, if every one had everything */
    int64_t ranks;
    int64_t step_price; /* of a step, besides its words */
};

/* All three are lent for as long as the goal is used. */
struct goal goal_of(const struct mesh *mesh, const struct shape *shape, const struct placement *at);
struct standing goal_standing(const struct goal *goal, const struct placement *placement);
/* What a way on from there costs at least: steps and words, as redistribute_path counts them. */
int64_t goal_least_rest(const struct goal *goal, const struct standing *at);
/* placement_divides() of where it stands. */
bool goal_divides(const struct goal *goal, const struct standing *at);

#endif
