/* boxes.c - steps executed element by element. */
#include "tests/common/placement/boxes.h"

#include "common/base/memory.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

const char *step_name(enum step_kind kind)
{
    static const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather",
                                        "all_to_all", "permute",        "slice"};
    return names[kind];
}

static bool inside(const struct box *box, const int64_t *at)
{
    for (int dim = 0; dim < box->dims; dim++)
        if (at[dim] < box->low[dim] || at[dim] >= box->high[dim])
            return false;
    return true;
}

static int64_t offset_in(const struct box *box, const int64_t *at)
{
    int64_t offset = 0;
    for (int dim = 0; dim < box->dims; dim++)
        offset = offset * box_length(box, dim) + at[dim] - box->low[dim];
    return offset;
}

static void step_on(const struct box *box, int64_t *at)
{
    for (int dim = box->dims - 1; dim >= 0 && ++at[dim] == box->high[dim]; dim--)
        at[dim] = box->low[dim];
}

static double whole_value(const struct situation *s, const int64_t *at)
{
    struct box whole = shape_box(&s->shape);
    return (double)(offset_in(&whole, at) * 7 % 1009 + 1);
}

/* What a rank holds of an element: all of it, or a summand that depends on where it stands on the
 * partial axes; the one at their origin has what the others lack. */
static double summand(const struct situation *s, const struct placement *placement, int rank,
                      const int64_t *at)
{
    int members[RANKS_MAX], own = mesh_group(&s->mesh, rank, placement->partial, members);
    int count = mesh_span(&s->mesh, placement->partial);
    int64_t index = (int64_t)whole_value(s, at);
    if (own > 0)
        return (double)(index * own % 31);
    double value = whole_value(s, at);
    for (int i = 1; i < count; i++)
        value -= (double)(index * i % 31);
    return value;
}

void boxes_fill(struct boxes *boxes, const struct situation *s, const struct placement *placement)
{
    for (int rank = 0; rank < mesh_count(&s->mesh); rank++) {
        struct holding *holding = &boxes->ranks[rank];
        holding->box = placement_slice(&s->mesh, &s->shape, placement, rank);
        int64_t at[DIMS_MAX], count = box_count(&holding->box);
        holding->data = xcalloc((size_t)count + 1, sizeof *holding->data);
        memcpy(at, holding->box.low, sizeof at);
        for (int64_t i = 0; i < count; i++, step_on(&holding->box, at))
            holding->data[i] = summand(s, placement, rank, at);
    }
}

void boxes_finish(struct boxes *boxes)
{
    for (int rank = 0; rank < RANKS_MAX; rank++)
        free(boxes->ranks[rank].data);
}

/* One element from the group: the sum of all its members, or a copy from the rank itself or else
 * from the first member that has it. */
static double read_element(struct boxes *boxes, const struct step *step, const int *members,
                           int count, int own, const int64_t *at, const char *what)
{
    bool sums = step->kind == STEP_ALL_REDUCE || step->kind == STEP_REDUCE_SCATTER;
    double value = 0;
    bool found = false;
    for (int i = 0; i < count; i++) {
        int member = (i + own) % count; /* its own first */
        const struct holding *holding = &boxes->ranks[members[member]];
        bool has = inside(&holding->box, at);
        ck_assert_msg(has || !sums, "%s: a summand is missing", what);
        if (!has || (found && !sums))
            continue;
        found = true;
        value += holding->data[offset_in(&holding->box, at)];
        boxes->words += member != own && step->kind != STEP_ALL_REDUCE;
    }
    ck_assert_msg(found, "%s: %s reads what nobody in the group has", what, step_name(step->kind));
    return value;
}

void boxes_step(struct boxes *boxes, const struct situation *s, const struct step *step,
                const char *what)
{
    struct boxes after = {.words = 0};
    for (int rank = 0; rank < mesh_count(&s->mesh); rank++) {
        int members[RANKS_MAX], own = mesh_group(&s->mesh, rank, step->axes, members);
        int span = mesh_span(&s->mesh, step->axes);
        struct holding *made = &after.ranks[rank];
        made->box = placement_slice(&s->mesh, &s->shape, &step->to, rank);
        int64_t at[DIMS_MAX], count = box_count(&made->box);
        made->data = xcalloc((size_t)count + 1, sizeof *made->data);
        memcpy(at, made->box.low, sizeof at);
        for (int64_t i = 0; i < count; i++, step_on(&made->box, at))
            made->data[i] = read_element(boxes, step, members, span, own, at, what);
        /* A ring: the summands of its own chunk, then the other finished chunks. */
        if (step->kind == STEP_ALL_REDUCE) {
            int64_t chunk = count * (own + 1) / span - count * own / span;
            boxes->words += (span - 1) * chunk + count - chunk;
        }
    }
    after.words = boxes->words;
    boxes_finish(boxes);
    *boxes = after;
}

/* The partial pieces of every element sum up to the whole. */
void boxes_check(struct boxes *boxes, const struct situation *s, const struct placement *placement,
                 const char *what)
{
    for (int rank = 0; rank < mesh_count(&s->mesh); rank++) {
        int members[RANKS_MAX], span = mesh_span(&s->mesh, placement->partial);
        mesh_group(&s->mesh, rank, placement->partial, members);
        const struct box *box = &boxes->ranks[rank].box;
        int64_t at[DIMS_MAX], count = box_count(box);
        memcpy(at, box->low, sizeof at);
        for (int64_t i = 0; i < count; i++, step_on(box, at)) {
            double value = 0;
            for (int m = 0; m < span; m++)
                value += boxes->ranks[members[m]].data[i];
            ck_assert_msg(value == whole_value(s, at), "%s: rank %d, element %ld is %g, not %g",
                          what, rank, (long)i, value, whole_value(s, at));
        }
    }
}
