/* goal.c - the lower bound on the cost of a path, computed from how the two placements cut the
 * tensor, without looking at single ranks. */
#include "common/placement/goal.h"

#include "common/placement/redistribute.h"

#include <string.h>

static struct duties duties_of(const struct placement *placement, int dims)
{
    struct duties duties;
    memset(&duties, -1, sizeof duties);
    for (unsigned left = placement->partial; left; left &= left - 1)
        duties.of[__builtin_ctz(left)] = DIMS_MAX;
    for (int dim = 0; dim < dims; dim++)
        for (int i = 0; i < placement->count[dim]; i++)
            duties.of[placement->axis[dim][i]] = (int8_t)dim;
    return duties;
}

static struct cuts cuts_of(const struct goal *goal, const struct duties *at)
{
    struct cuts cuts = {.idle = 1, .pending = 1};
    for (int dim = 0; dim < DIMS_MAX; dim++)
        cuts.parts[dim] = 1;
    for (int axis = 0; axis < goal->mesh->axes; axis++) {
        int8_t duty = at->of[axis];
        int size = goal->mesh->size[axis];
        if (duty < 0)
            cuts.idle *= size;
        else if (duty < DIMS_MAX)
            cuts.parts[duty] *= size;
        else if (goal->duties.of[axis] != DIMS_MAX)
            cuts.pending *= size;
    }
    return cuts;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The elements of all ranks' pieces together. */
static int64_t elements_of(const struct goal *goal, const struct cuts *cuts)
{
    int64_t parts = 1;
    for (int dim = 0; dim < goal->shape->dims; dim++)
        parts *= cuts->parts[dim];
    return goal->whole / parts; /* the same as dividing and rounding down dim by dim */
}

/* A lower bound on the words that all ranks together have to receive.
 *
 * With sums still to be reduced, every element of the goal is new to its rank, so at least all of
 * them are received. Reducing takes at least a reduce-scatter of pieces without replicas, and then
 * the elements that the goal has more of. Without, a rank may already hold what it needs, but along
 * each dim at most the shorter of its two pieces. */
static int64_t least_words(const struct goal *goal, const struct cuts *at)
{
    int64_t wanted = goal->elements, more = wanted - elements_of(goal, at);
    if (at->pending > 1) {
        int64_t summands = elements_of(goal, at) / at->idle;
        int64_t reduced = summands - summands / at->pending;
        return larger(wanted, reduced + larger(0, more + reduced));
    }
    if (goal->mesh->weights)
        return larger(0, more);
    int64_t kept = goal->ranks;
    for (int dim = 0; dim < goal->shape->dims; dim++) {
        int64_t size = goal->shape->size[dim],
                parts = larger(at->parts[dim], goal->cuts.parts[dim]);
        kept *= parts == 1 ? size : (size + parts - 1) / parts;
    }
    return larger(larger(0, more), wanted - kept);
}

/* A step changes the duty of one axis at most. */
static int64_t least_steps(const struct goal *goal, const struct duties *at)
{
    int64_t steps = 0;
    for (int axis = 0; axis < goal->mesh->axes; axis++)
        steps += at->of[axis] != goal->duties.of[axis];
    return steps;
}

int64_t goal_least_rest(const struct goal *goal, const struct standing *at)
{
    return least_steps(goal, &at->duties) * goal->step_price + least_words(goal, &at->cuts);
}

bool goal_divides(const struct goal *goal, const struct standing *at)
{
    const struct shape *shape = goal->shape;
    for (int dim = 0; dim < shape->dims && !shape->uneven; dim++)
        if (at->cuts.parts[dim] > 1 && shape->dim[dim] != 'b' &&
            shape->size[dim] % at->cuts.parts[dim] != 0)
            return false;
    return true;
}

struct standing goal_standing(const struct goal *goal, const struct placement *placement)
{
    struct standing standing = {.duties = duties_of(placement, goal->shape->dims)};
    standing.cuts = cuts_of(goal, &standing.duties);
    return standing;
}

struct goal goal_of(const struct mesh *mesh, const struct shape *shape, const struct placement *at)
{
    struct goal goal = {
        .mesh = mesh, .shape = shape, .at = at, .duties = duties_of(at, shape->dims)};
    goal.ranks = goal.whole = mesh_count(mesh);
    for (int dim = 0; dim < shape->dims; dim++)
        goal.whole *= shape->size[dim];
    goal.step_price = STEP_PRICE_WORDS * goal.ranks;
    goal.cuts = cuts_of(&goal, &goal.duties);
    goal.elements = elements_of(&goal, &goal.cuts);
    return goal;
}
