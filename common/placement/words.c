/* words.c - how much moves in one step, in closed form or over the axes that matter: searches ask
 * for it by the thousand, on meshes of a thousand ranks. */
#include "common/placement/redistribute.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

static bool same_cut(const struct placement *a, const struct placement *b, int dim)
{
    return a->count[dim] == b->count[dim] &&
           memcmp(a->axis[dim], b->axis[dim], sizeof a->axis[dim]) == 0;
}

/* One dim of placement_slice(), for the rank at these coordinates. */
static void slice_dim(const struct mesh *mesh, const struct shape *shape,
                      const struct placement *placement, int dim, int rank, const int *at,
                      int64_t *low, int64_t *high)
{
    if (mesh->weights) {
        struct box box = placement_slice(mesh, shape, placement, rank);
        *low = box.low[dim];
        *high = box.high[dim];
        return;
    }
    *low = 0;
    *high = shape->size[dim];
    for (int i = 0; i < placement->count[dim]; i++) {
        int axis = placement->axis[dim][i];
        int64_t length = *high - *low, parts = mesh->size[axis];
        *high = *low + length * (at[axis] + 1) / parts;
        *low += length * at[axis] / parts;
    }
}

/* Do the cuts of b begin with those of a? Then its pieces are parts of a's. */
static bool is_finer(const struct placement *a, const struct placement *b, int dim)
{
    return a->count[dim] <= b->count[dim] && memcmp(a->axis[dim], b->axis[dim], a->count[dim]) == 0;
}

/* Along one dim: what a rank has before and after, summed over this rank and those that differ from
 * it on these axes alone. */
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
        int64_t low = 0, high = shape->size[dim], low_after = 0, high_after = high;
        mesh_coordinates(mesh, ranks[i], at);
        if (!finer)
            slice_dim(mesh, shape, from, dim, ranks[i], at, &low, &high);
        if (!coarser)
            slice_dim(mesh, shape, to, dim, ranks[i], at, &low_after, &high_after);
        low = low > low_after ? low : low_after;
        high = high < high_after ? high : high_after;
        sum += high > low ? high - low : 0;
    }
    free(ranks);
    return sum;
}

/* Elements of all ranks' pieces that stay, along the dims that are cut anew. The two of an
 * all-to-all have only the axis in common that moves between them. */
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

/* Pieces of a dim that is cut again and again: so many of a length, so many one longer. */
struct pieces {
    int64_t length, count, longer;
};

/* A piece of n = q p + r elements is cut into p - r pieces of q and r of q + 1. */
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

/* What the ranks along a dim's other axes hold together at coordinate `at` of its minor-most. */
static int64_t held_at(const struct pieces *whole, int parts, int at)
{
    int64_t length = whole->length, longer = length + 1;
    return whole->count * (length * (at + 1) / parts - length * at / parts) +
           whole->longer * (longer * (at + 1) / parts - longer * at / parts);
}

/* kept_by_all() where one dim gives its minor-most axis to another: a rank keeps the smaller piece
 * of either. */
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

/* Of the ranks along a dim's axes, those whose equal pieces stay when two neighbouring axes of p
 * and q devices change places: x q + y = y p + x, so x (q - 1) = y (p - 1). */
static int64_t ranks_that_stay(const struct mesh *mesh, const struct placement *from,
                               const struct placement *to, int dim)
{
    int i = 0;
    while (from->axis[dim][i] == to->axis[dim][i])
        i++;
    int p = mesh->size[from->axis[dim][i]], q = mesh->size[to->axis[dim][i]];
    int a = p - 1, b = q - 1; /* to their greatest common divisor */
    while (b != 0) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return mesh_span(mesh, placement_axes(from, dim)) / ((int64_t)p * q) * (a + 1);
}

/* The same of all ranks and dims. Dims have no axes in common: what is kept along those that are
 * cut anew depends on their axes alone, and the other dims' pieces add up to the whole. */
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
        /* One dim loses its minor-most axis, the other gains it: the smaller piece is kept. */
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
