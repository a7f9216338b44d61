/* steps.c - which single steps lead away from a placement, and how much data each moves.
 *
 * Searches ask for the latter by the thousand, on meshes of a thousand ranks, so it never compares
 * all ranks' boxes: it is computed in closed form where possible, else over the axes that change.
 */
#include "common/placement/redistribute.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

static struct placement without_minor(const struct placement *from, int dim)
{
    struct placement to = *from;
    to.axis[dim][--to.count[dim]] = 0;
    return to;
}

static void enumerate_partial(const struct shape *shape, const struct placement *from, int axis,
                              void (*found)(void *, const struct step *), void *context)
{
    struct step step = {STEP_ALL_REDUCE, 1u << axis, *from};
    step.to.partial &= (uint8_t) ~(1u << axis);
    found(context, &step);
    step.kind = STEP_REDUCE_SCATTER;
    struct placement rest = step.to;
    for (int dim = 0; dim < shape->dims; dim++) {
        step.to = rest;
        placement_append(&step.to, dim, axis);
        found(context, &step);
    }
}

static void enumerate_split(const struct shape *shape, const struct placement *from, int dim,
                            void (*found)(void *, const struct step *), void *context)
{
    int minor = from->axis[dim][from->count[dim] - 1];
    struct placement gathered = without_minor(from, dim);
    struct step step = {STEP_ALL_GATHER, 1u << minor, gathered};
    found(context, &step);
    step.kind = STEP_ALL_TO_ALL;
    for (int other = 0; other < shape->dims; other++) {
        step.to = gathered;
        placement_append(&step.to, other, minor);
        if (other != dim)
            found(context, &step);
    }
    step.kind = STEP_PERMUTE;
    for (int i = 0; i + 1 < from->count[dim]; i++) {
        step.to = *from;
        step.to.axis[dim][i] = from->axis[dim][i + 1];
        step.to.axis[dim][i + 1] = from->axis[dim][i];
        step.axes = 0; /* if the dim is uneven, pieces move along all minor axes too */
        for (int j = i; j < from->count[dim]; j++)
            step.axes |= 1u << from->axis[dim][j];
        found(context, &step);
    }
}

void step_enumerate(const struct mesh *mesh, const struct shape *shape,
                    const struct placement *from, void (*found)(void *context, const struct step *),
                    void *context)
{
    for (int axis = 0; axis < mesh->axes; axis++)
        if (from->partial >> axis & 1)
            enumerate_partial(shape, from, axis, found, context);
    for (int dim = 0; dim < shape->dims; dim++)
        if (from->count[dim])
            enumerate_split(shape, from, dim, found, context);
    unsigned used = from->partial | placement_split_axes(from);
    for (int axis = 0; axis < mesh->axes; axis++) {
        for (int dim = 0; dim < shape->dims && !(used >> axis & 1); dim++) {
            struct step step = {STEP_SLICE, 0, *from};
            placement_append(&step.to, dim, axis);
            found(context, &step);
        }
    }
}

/* ---- words ---- */

static bool same_cut(const struct placement *a, const struct placement *b, int dim)
{
    return a->count[dim] == b->count[dim] &&
           memcmp(a->axis[dim], b->axis[dim], sizeof a->axis[dim]) == 0;
}

/* Do the axes of b begin with those of a? Then every rank's piece in b is part of its piece in a.
 */
static bool is_finer(const struct placement *a, const struct placement *b, int dim)
{
    return a->count[dim] <= b->count[dim] && memcmp(a->axis[dim], b->axis[dim], a->count[dim]) == 0;
}

/* Along one dim, the length that a rank has both before and after, summed over the rank's group
 * along these axes. */
static int64_t kept_of_dim(const struct mesh *mesh, const struct shape *shape,
                           const struct placement *from, const struct placement *to, int dim,
                           unsigned axes, int rank)
{
    int count = mesh_span(mesh, axes), at[AXES_MAX];
    bool finer = is_finer(from, to, dim), coarser = is_finer(to, from, dim);
    int *ranks = xcalloc((size_t)count, sizeof *ranks);
    int64_t sum = 0;
    mesh_group(mesh, rank, axes, ranks);
    for (int i = 0; i < count; i++) {
        struct box kept, after;
        mesh_coordinates(mesh, ranks[i], at);
        placement_slice_dim(mesh, shape, finer ? to : from, dim, ranks[i], at, &kept);
        int64_t low = kept.low[dim], high = kept.high[dim];
        if (!finer && !coarser) {
            placement_slice_dim(mesh, shape, to, dim, ranks[i], at, &after);
            low = low > after.low[dim] ? low : after.low[dim];
            high = high < after.high[dim] ? high : after.high[dim];
        }
        sum += high > low ? high - low : 0;
    }
    free(ranks);
    return sum;
}

/* The elements that stay on their ranks, summed over all ranks, considering only the dims that are
 * cut differently. The two dims of an all-to-all share only the axis that moves between them, so
 * for each of its coordinates their lengths multiply. */
static int64_t kept_by_all(const struct mesh *mesh, const struct shape *shape,
                           const struct placement *from, const struct placement *to)
{
    unsigned moved = 0;
    for (int dim = 0; dim < shape->dims; dim++)
        moved |= placement_axes(from, dim) ^ placement_axes(to, dim);
    int count = mesh_span(mesh, moved);
    int *ranks = xcalloc((size_t)count, sizeof *ranks);
    int64_t sum = 0;
    mesh_group(mesh, 0, moved, ranks);
    for (int i = 0; i < count; i++) {
        int64_t elements = 1;
        for (int dim = 0; dim < shape->dims; dim++) {
            unsigned axes = placement_axes(from, dim) | placement_axes(to, dim);
            if (!same_cut(from, to, dim))
                elements *= kept_of_dim(mesh, shape, from, to, dim, axes & ~moved, ranks[i]);
        }
        sum += elements;
    }
    free(ranks);
    return sum;
}

/* The pieces of a repeatedly cut dim, which have one of two lengths: `count` of them have `length`
 * elements and `longer` have one more. */
struct pieces {
    int64_t length, count, longer;
};

/* Cuts every piece into p parts. One of n = q p + r elements gives p - r parts of q elements and r
 * parts of q + 1. */
static struct pieces cut_pieces(const struct pieces *whole, int parts)
{
    int64_t rest = whole->length % parts, next = (rest + 1) % parts;
    struct pieces cut = {whole->length / parts, whole->count * (parts - rest),
                         whole->count * rest + whole->longer * next};
    if (next == 0)
        cut.longer += whole->longer * parts;
    else
        cut.count += whole->longer * (parts - next);
    return cut;
}

/* The elements along a dim at coordinate `at` of its minor-most axis, summed over its other axes.
 */
static int64_t held_at(const struct pieces *whole, int parts, int at)
{
    int64_t length = whole->length, longer = length + 1;
    return whole->count * (length * (at + 1) / parts - length * at / parts) +
           whole->longer * (longer * (at + 1) / parts - longer * at / parts);
}

/* kept_by_all() for an all-to-all, in which one dim gives its minor-most axis to another. Along
 * each of the two dims a rank keeps the smaller of its pieces before and after. */
static int64_t kept_by_giving(const struct mesh *mesh, const struct shape *shape,
                              const struct placement *from, const struct placement *to)
{
    struct pieces wholes[2];
    int count = 0, axis = 0;
    for (int dim = 0; dim < shape->dims; dim++) {
        const struct placement *coarse = from->count[dim] < to->count[dim] ? from : to;
        if (same_cut(from, to, dim))
            continue;
        wholes[count] = (struct pieces){shape->size[dim], 1, 0};
        for (int i = 0; i < coarse->count[dim]; i++)
            wholes[count] = cut_pieces(&wholes[count], mesh->size[coarse->axis[dim][i]]);
        count++;
        if (coarse == to)
            axis = from->axis[dim][to->count[dim]];
    }
    int64_t sum = 0;
    int parts = mesh->size[axis];
    for (int at = 0; at < parts; at++)
        sum += held_at(&wholes[0], parts, at) * held_at(&wholes[1], parts, at);
    return sum;
}

/* The ranks along a dim's axes that keep their (equal) pieces when two neighbouring axes of p and q
 * devices change places. Coordinates x < p and y < q keep theirs if x q + y = y p + x, that is
 * x (q - 1) = y (p - 1); this has gcd(p - 1, q - 1) + 1 solutions. */
static int64_t ranks_that_stay(const struct mesh *mesh, const struct placement *from,
                               const struct placement *to, int dim)
{
    int i = 0;
    while (from->axis[dim][i] == to->axis[dim][i])
        i++;
    int p = mesh->size[from->axis[dim][i]], q = mesh->size[to->axis[dim][i]];
    int a = p - 1, b = q - 1; /* reduced to their greatest common divisor */
    while (b != 0) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return mesh_span(mesh, placement_axes(from, dim)) / ((int64_t)p * q) * (a + 1);
}

/* The elements that stay on their ranks in an all-to-all or permute, over all ranks and dims. Two
 * dims have no axes in common, so what is kept along the dims that are cut differently depends on
 * their axes only, and the pieces of the other dims add up to the whole. */
static int64_t all_kept(const struct mesh *mesh, const struct shape *shape,
                        const struct placement *from, const struct step *step)
{
    const struct placement *to = &step->to;
    unsigned axes = 0, split = placement_split_axes(from);
    bool equal = !mesh->weights;
    int64_t ranks = 1, others = mesh_count(mesh) / mesh_span(mesh, split), own = 1;
    for (int dim = 0; dim < shape->dims; dim++) {
        unsigned cut = placement_axes(from, dim) | placement_axes(to, dim);
        if (same_cut(from, to, dim)) {
            others *= shape->size[dim];
            continue;
        }
        /* All-to-all: the rank keeps the smaller of its pieces before and after. */
        axes |= cut;
        ranks = step->kind == STEP_PERMUTE ? ranks_that_stay(mesh, from, to, dim)
                                           : mesh_span(mesh, axes);
        equal = equal && shape->size[dim] % mesh_span(mesh, cut) == 0;
        own *= shape->size[dim] / mesh_span(mesh, cut);
    }
    if (equal)
        return own * ranks * others;
    if (step->kind == STEP_ALL_TO_ALL && !mesh->weights)
        return others * kept_by_giving(mesh, shape, from, to);
    return others * kept_by_all(mesh, shape, from, to);
}

int64_t step_words(const struct mesh *mesh, const struct shape *shape, const struct placement *from,
                   const struct step *step)
{
    int64_t before = placement_elements(mesh, shape, from),
            after = placement_elements(mesh, shape, &step->to);
    int64_t span = mesh_span(mesh, step->axes);
    switch (step->kind) {
    case STEP_ALL_REDUCE:
        return 2 * before * (span - 1) / span;
    case STEP_REDUCE_SCATTER:
        return before - after;
    case STEP_ALL_GATHER:
        return after - before;
    case STEP_ALL_TO_ALL:
    case STEP_PERMUTE:
        return after - all_kept(mesh, shape, from, step);
    case STEP_SLICE:
        break;
    }
    return 0;
}
