/* situation.h - a mesh and a shape drawn at random, all placements that divide, and what every
 * single step between two of them costs.
 *
 * Steps are taken from their definition here, not from the search: only the minor-most axis of
 * a dim may be gathered, added or moved. */
#ifndef TESTS_COMMON_PLACEMENT_SITUATION_H
#define TESTS_COMMON_PLACEMENT_SITUATION_H

#include "common/placement/redistribute.h"

#define RANKS_MAX 27
#define PLACEMENTS_MAX 512

struct situation {
    struct mesh mesh;
    struct shape shape;
    int weights[RANKS_MAX];
    struct placement placements[PLACEMENTS_MAX];
    int count;
    int64_t *costs; /* of a single step between two placements; -1: there is none */
    uint64_t seed, next;
};

/* 1 to 3 axes of 2 or 3; 2 or 3 dims; b of any length and cut by weights. Lengths of the others
 * can be cut by all axes, or only by one, so that some ways are closed. */
struct situation *situation_create(int index);
void situation_destroy(struct situation *s);
int situation_draw(struct situation *s, int bound);
/* Index of a placement, or -1. */
int situation_find(const struct situation *s, const struct placement *placement);
/* For messages; lent until the next call. */
const char *situation_describe(const struct situation *s, const struct placement *from,
                               const struct placement *to);

/* The placement without the minor-most axis of the dim. */
struct placement without_minor(const struct placement *placement, int dim);
/* Is there one step from a to b, and of what kind? */
bool single_step(const struct placement *a, const struct placement *b, enum step_kind *kind);

/* Cheapest costs from one placement to all others, by relaxing every step until nothing gets
 * cheaper. -1: there is no way. */
void situation_exhaust(const struct situation *s, int from, int64_t *costs);
/* The least cost of single steps of one kind between two placements: a merged step, undone. */
int64_t situation_undone(const struct situation *s, int from, int to, enum step_kind kind);

#endif
