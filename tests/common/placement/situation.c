/* situation.c - placements and single steps by definition, and prices by exhaustion. */
#include "tests/common/placement/situation.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int situation_draw(struct situation *s, int bound)
{
    return (int)random_below(s->seed, 71, s->next++, (uint64_t)bound);
}

/* ---- all placements ---- */

static void add_placement(struct situation *s, const struct placement *placement)
{
    char dim;
    int parts;
    if (!placement_divides(&s->mesh, &s->shape, placement, &dim, &parts))
        return;
    ck_assert_int_lt(s->count, PLACEMENTS_MAX);
    s->placements[s->count++] = *placement;
}

/* Axis after axis: broadcast, partial, or at every place of every dim's list. */
static void list_placements(struct situation *s, int axis, const struct placement *so_far)
{
    if (axis == s->mesh.axes) {
        add_placement(s, so_far);
        return;
    }
    struct placement next = *so_far;
    list_placements(s, axis + 1, &next);
    next.partial |= (uint8_t)(1u << axis);
    list_placements(s, axis + 1, &next);
    for (int dim = 0; dim < s->shape.dims; dim++) {
        for (int place = 0; place <= so_far->count[dim]; place++) {
            next = *so_far;
            uint8_t *list = next.axis[dim];
            memmove(list + place + 1, list + place, (size_t)(next.count[dim] - place));
            list[place] = (uint8_t)axis;
            next.count[dim]++;
            list_placements(s, axis + 1, &next);
        }
    }
}

int situation_find(const struct situation *s, const struct placement *placement)
{
    for (int i = 0; i < s->count; i++)
        if (placement_equal(&s->placements[i], placement))
            return i;
    return -1;
}

/* ---- single steps, by definition ---- */

/* The dim on which the lists differ in length by `more`, the longer one having one minor-most
 * axis on top of the shorter; -1: there is none. */
static int extended_dim(const struct placement *shorter, const struct placement *longer, int *axis)
{
    for (int dim = 0; dim < DIMS_MAX; dim++)
        if (longer->count[dim] == shorter->count[dim] + 1) {
            *axis = longer->axis[dim][shorter->count[dim]];
            return dim;
        }
    return -1;
}

struct placement without_minor(const struct placement *placement, int dim)
{
    struct placement rest = *placement;
    rest.axis[dim][--rest.count[dim]] = 0;
    return rest;
}

static bool is_swap(const struct placement *a, const struct placement *b)
{
    for (int dim = 0; dim < DIMS_MAX; dim++)
        for (int i = 0; i + 1 < a->count[dim]; i++) {
            struct placement swapped = *a;
            swapped.axis[dim][i] = a->axis[dim][i + 1];
            swapped.axis[dim][i + 1] = a->axis[dim][i];
            if (placement_equal(&swapped, b))
                return true;
        }
    return false;
}

bool single_step(const struct placement *a, const struct placement *b, enum step_kind *kind)
{
    int gained_axis = -1, lost_axis = -1;
    int gained = extended_dim(a, b, &gained_axis), lost = extended_dim(b, a, &lost_axis);
    struct placement from = lost >= 0 ? without_minor(a, lost) : *a;
    struct placement to = gained >= 0 ? without_minor(b, gained) : *b;
    unsigned summed = from.partial & ~(unsigned)to.partial;
    bool one_summed = summed && (summed & (summed - 1)) == 0;
    to.partial |= (uint8_t)summed;
    if (!placement_equal(&from, &to)) {
        *kind = STEP_PERMUTE;
        return gained < 0 && lost < 0 && !summed && is_swap(a, b);
    }
    if (one_summed && lost < 0) {
        *kind = gained < 0 ? STEP_ALL_REDUCE : STEP_REDUCE_SCATTER;
        return gained < 0 || summed == 1u << gained_axis;
    }
    if (summed)
        return false;
    if (gained >= 0 && lost >= 0) {
        *kind = STEP_ALL_TO_ALL;
        return gained_axis == lost_axis;
    }
    *kind = gained >= 0 ? STEP_SLICE : STEP_ALL_GATHER;
    return gained >= 0 || lost >= 0;
}

static unsigned changed_axes(const struct placement *a, const struct placement *b)
{
    unsigned axes = (a->partial ^ b->partial) & 0xffu;
    return axes | (placement_split_axes(a) ^ placement_split_axes(b));
}

static void price_steps(struct situation *s)
{
    size_t pairs = (size_t)s->count * (size_t)s->count;
    s->costs = xcalloc(pairs, sizeof *s->costs);
    for (int i = 0; i < s->count; i++)
        for (int j = 0; j < s->count; j++) {
            const struct placement *from = &s->placements[i], *to = &s->placements[j];
            struct step step = {.axes = changed_axes(from, to), .to = *to};
            int64_t *cost = &s->costs[i * s->count + j];
            *cost = -1;
            if (i != j && single_step(from, to, &step.kind))
                *cost = step_words(&s->mesh, &s->shape, from, &step) +
                        (int64_t)STEP_PRICE_WORDS * mesh_count(&s->mesh);
        }
}

/* ---- situations ---- */

struct situation *situation_create(int index)
{
    struct situation *s = xcalloc(1, sizeof *s);
    s->seed = test_seed() + (uint64_t)index;
    s->mesh.axes = 1 + index % 3;
    for (int axis = 0; axis < s->mesh.axes; axis++)
        s->mesh.size[axis] = 2 + situation_draw(s, 2);
    int ranks = mesh_count(&s->mesh), dims = s->mesh.axes == 3 ? 2 : 2 + situation_draw(s, 2);
    if (s->mesh.axes == 3 && situation_draw(s, 4) == 0)
        dims = 3;
    if (situation_draw(s, 2)) {
        for (int rank = 0; rank < ranks; rank++)
            s->weights[rank] = 1 + situation_draw(s, 4);
        s->mesh.weights = s->weights;
    }
    int samples = 1 + situation_draw(s, 9);
    bool vocab = situation_draw(s, 3) == 0; /* may be cut into pieces of two lengths */
    struct tensor tensor = {.dims = vocab ? "bsv" : "bsh"};
    tensor.sizes[1] = situation_draw(s, 3) ? ranks : s->mesh.size[0];
    tensor.sizes[2] = situation_draw(s, 3) ? ranks : s->mesh.size[s->mesh.axes - 1];
    if (vocab)
        tensor.sizes[2] = ranks + situation_draw(s, 8);
    if (dims == 2 && situation_draw(s, 2)) {
        tensor.dims = "bs";
    } else if (dims == 2) {
        tensor.dims = vocab ? "sv" : "sh";
        memmove(tensor.sizes, tensor.sizes + 1, 2 * sizeof *tensor.sizes);
    }
    s->shape = shape_of(&tensor, samples);
    s->shape.uneven = situation_draw(s, 4) == 0;
    list_placements(s, 0, &(struct placement){0});
    price_steps(s);
    return s;
}

void situation_destroy(struct situation *s)
{
    free(s->costs);
    free(s);
}

const char *situation_describe(const struct situation *s, const struct placement *from,
                               const struct placement *to)
{
    static char text[512];
    char a[96], b[96];
    snprintf(text, sizeof text, "seed %lu, mesh %d x %d x %d, %s %ld x %ld x %ld: %s to %s",
             (unsigned long)s->seed, s->mesh.size[0], s->mesh.size[1], s->mesh.size[2],
             s->shape.dim, (long)s->shape.size[0], (long)s->shape.size[1], (long)s->shape.size[2],
             placement_print(a, sizeof a, s->shape.dim, from),
             placement_print(b, sizeof b, s->shape.dim, to));
    return text;
}

/* ---- prices ---- */

void situation_exhaust(const struct situation *s, int from, int64_t *costs)
{
    for (int i = 0; i < s->count; i++)
        costs[i] = i == from ? 0 : -1;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < s->count; i++)
            for (int j = 0; j < s->count && costs[i] >= 0; j++) {
                int64_t step = s->costs[i * s->count + j];
                if (step < 0 || (costs[j] >= 0 && costs[j] <= costs[i] + step))
                    continue;
                costs[j] = costs[i] + step;
                changed = true;
            }
    }
}

int64_t situation_undone(const struct situation *s, int from, int to, enum step_kind kind)
{
    int64_t best = -1;
    if (from == to)
        return 0;
    for (int i = 0; i < s->count; i++) {
        enum step_kind single;
        if (s->costs[from * s->count + i] < 0)
            continue;
        /* No kind leads back, but a permute, and permutes are never merged. */
        bool last = kind == STEP_PERMUTE || kind == STEP_ALL_TO_ALL;
        if (!single_step(&s->placements[from], &s->placements[i], &single) || single != kind ||
            (last && i != to))
            continue;
        int64_t rest = situation_undone(s, i, to, kind);
        if (rest >= 0 && (best < 0 || s->costs[from * s->count + i] + rest < best))
            best = s->costs[from * s->count + i] + rest;
    }
    return best;
}
