/* test_redistribute.c - a path of steps, executed on simulated ranks, leaves the whole tensor as
 * it was, is as cheap as any, and moves as many words as it says.
 *
 * The model of a rank is a box full of numbers. A step fills its new box from the boxes of its
 * group and from nobody else's: copies, or sums where a partial axis is reduced. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/placement/redistribute.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 27
#define ELEMENTS_MAX 8192
#define PLACEMENTS_MAX 512
#define PAIRS 48 /* of placements drawn from one mesh and shape */

struct situation {
    struct mesh mesh;
    struct shape shape;
    int weights[RANKS_MAX];
    struct placement placements[PLACEMENTS_MAX];
    int count;
    int64_t *costs; /* of a single step between two placements; -1: there is none */
    uint64_t seed, next;
};

static int below(struct situation *s, int bound)
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

static int find_placement(const struct situation *s, const struct placement *placement)
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

static struct placement stripped(const struct placement *placement, int dim)
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

/* Is there one step from a to b, and of what kind? Only the minor-most axis of a dim may be
 * gathered, added or moved. */
static bool single_step(const struct placement *a, const struct placement *b, enum step_kind *kind)
{
    int gained_axis = -1, lost_axis = -1;
    int gained = extended_dim(a, b, &gained_axis), lost = extended_dim(b, a, &lost_axis);
    struct placement from = lost >= 0 ? stripped(a, lost) : *a;
    struct placement to = gained >= 0 ? stripped(b, gained) : *b;
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

/* 1 to 3 axes of 2 or 3; 2 or 3 dims; b of any length and cut by weights. Lengths of the others
 * can be cut by all axes, or only by one, so that some ways are closed. */
static struct situation *situation_create(int index)
{
    struct situation *s = xcalloc(1, sizeof *s);
    s->seed = test_seed() + (uint64_t)index;
    s->mesh.axes = 1 + index % 3;
    for (int axis = 0; axis < s->mesh.axes; axis++)
        s->mesh.size[axis] = 2 + below(s, 2);
    int ranks = mesh_count(&s->mesh), dims = s->mesh.axes == 3 ? 2 : 2 + below(s, 2);
    if (s->mesh.axes == 3 && below(s, 4) == 0)
        dims = 3;
    if (below(s, 2)) {
        for (int rank = 0; rank < ranks; rank++)
            s->weights[rank] = 1 + below(s, 4);
        s->mesh.weights = s->weights;
    }
    struct sizes sizes = {0};
    sizes_set(&sizes, 'b', 1 + below(s, 9));
    sizes_set(&sizes, 's', below(s, 3) ? ranks : s->mesh.size[0]);
    sizes_set(&sizes, 'h', below(s, 3) ? ranks : s->mesh.size[s->mesh.axes - 1]);
    s->shape = shape_of(dims == 2 ? (below(s, 2) ? "bs" : "sh") : "bsh", &sizes);
    s->shape.uneven = below(s, 4) == 0;
    list_placements(s, 0, &(struct placement){0});
    price_steps(s);
    return s;
}

static void situation_destroy(struct situation *s)
{
    free(s->costs);
    free(s);
}

static const char *describe(const struct situation *s, const struct placement *from,
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

/* ---- the model: ranks with boxes ---- */

struct holding {
    struct box box;
    double *data;
};

struct model {
    struct holding ranks[RANKS_MAX];
    int64_t words; /* read from others so far */
};

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

static void model_fill(struct model *model, const struct situation *s,
                       const struct placement *placement)
{
    for (int rank = 0; rank < mesh_count(&s->mesh); rank++) {
        struct holding *holding = &model->ranks[rank];
        holding->box = placement_slice(&s->mesh, &s->shape, placement, rank);
        int64_t at[DIMS_MAX], count = box_count(&holding->box);
        holding->data = xcalloc((size_t)count + 1, sizeof *holding->data);
        memcpy(at, holding->box.low, sizeof at);
        for (int64_t i = 0; i < count; i++, step_on(&holding->box, at))
            holding->data[i] = summand(s, placement, rank, at);
    }
}

static void model_finish(struct model *model)
{
    for (int rank = 0; rank < RANKS_MAX; rank++)
        free(model->ranks[rank].data);
}

/* One element from the group: the sum of all its members, or a copy from the rank itself or else
 * from the first member that has it. */
static double read_element(struct model *model, const struct step *step, const int *members,
                           int count, int own, const int64_t *at, const char *what)
{
    bool sums = step->kind == STEP_ALL_REDUCE || step->kind == STEP_REDUCE_SCATTER;
    double value = 0;
    bool found = false;
    for (int i = 0; i < count; i++) {
        int member = (i + own) % count; /* its own first */
        const struct holding *holding = &model->ranks[members[member]];
        bool has = inside(&holding->box, at);
        ck_assert_msg(has || !sums, "%s: a summand is missing", what);
        if (!has || (found && !sums))
            continue;
        found = true;
        value += holding->data[offset_in(&holding->box, at)];
        model->words += member != own && step->kind != STEP_ALL_REDUCE;
    }
    ck_assert_msg(found, "%s: %s reads what nobody in the group has", what, step_name(step->kind));
    return value;
}

static void model_step(struct model *model, const struct situation *s, const struct step *step,
                       const char *what)
{
    struct model after = {.words = 0};
    for (int rank = 0; rank < mesh_count(&s->mesh); rank++) {
        int members[RANKS_MAX], own = mesh_group(&s->mesh, rank, step->axes, members);
        int span = mesh_span(&s->mesh, step->axes);
        struct holding *made = &after.ranks[rank];
        made->box = placement_slice(&s->mesh, &s->shape, &step->to, rank);
        int64_t at[DIMS_MAX], count = box_count(&made->box);
        made->data = xcalloc((size_t)count + 1, sizeof *made->data);
        memcpy(at, made->box.low, sizeof at);
        for (int64_t i = 0; i < count; i++, step_on(&made->box, at))
            made->data[i] = read_element(model, step, members, span, own, at, what);
        /* A ring: the summands of its own chunk, then the other finished chunks. */
        if (step->kind == STEP_ALL_REDUCE) {
            int64_t chunk = count * (own + 1) / span - count * own / span;
            model->words += (span - 1) * chunk + count - chunk;
        }
    }
    after.words = model->words;
    model_finish(model);
    *model = after;
}

/* The partial pieces of every element sum up to the whole. */
static void model_check(struct model *model, const struct situation *s,
                        const struct placement *placement, const char *what)
{
    for (int rank = 0; rank < mesh_count(&s->mesh); rank++) {
        int members[RANKS_MAX], span = mesh_span(&s->mesh, placement->partial);
        mesh_group(&s->mesh, rank, placement->partial, members);
        const struct box *box = &model->ranks[rank].box;
        int64_t at[DIMS_MAX], count = box_count(box);
        memcpy(at, box->low, sizeof at);
        for (int64_t i = 0; i < count; i++, step_on(box, at)) {
            double value = 0;
            for (int m = 0; m < span; m++)
                value += model->ranks[members[m]].data[i];
            ck_assert_msg(value == whole_value(s, at), "%s: rank %d, element %ld is %g, not %g",
                          what, rank, (long)i, value, whole_value(s, at));
        }
    }
}

/* ---- prices ---- */

/* Cheapest costs from one placement to all others, by relaxing every step until nothing gets
 * cheaper. -1: there is no way. */
static void exhaust(const struct situation *s, int from, int64_t *costs)
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

/* The least cost of single steps of one kind between two placements: a merged step, undone. */
static int64_t undone(const struct situation *s, int from, int to, enum step_kind kind)
{
    int64_t best = -1;
    if (from == to)
        return 0;
    for (int i = 0; i < s->count; i++) {
        enum step_kind single;
        if (s->costs[from * s->count + i] < 0)
            continue;
        single_step(&s->placements[from], &s->placements[i], &single);
        /* No kind leads back, but a permute, and permutes are never merged. */
        bool last = kind == STEP_PERMUTE || kind == STEP_ALL_TO_ALL;
        if (single != kind || (last && i != to))
            continue;
        int64_t rest = undone(s, i, to, kind);
        if (rest >= 0 && (best < 0 || s->costs[from * s->count + i] + rest < best))
            best = s->costs[from * s->count + i] + rest;
    }
    return best;
}

static void check_pair(struct situation *s, int from, int to, const int64_t *costs)
{
    const struct placement *a = &s->placements[from], *b = &s->placements[to];
    const char *what = describe(s, a, b);
    struct step steps[STEPS_MAX];
    struct error err = {""};
    int count = redistribute_path(&s->mesh, &s->shape, a, b, steps, &err);
    if (costs[to] < 0) {
        ck_assert_msg(count == -EINVAL && err.text[0], "%s: there is a way", what);
        ck_assert_msg(b->partial & ~(unsigned)a->partial, "%s: there is none", what);
        return;
    }
    ck_assert_msg(count >= 0, "%s: %s", what, err.text);
    ck_assert_msg((count == 0) == (from == to), "%s: %d steps", what, count);

    struct model model = {.words = 0};
    model_fill(&model, s, a);
    int64_t cost = 0;
    for (int i = 0, at = from; i < count; i++) {
        int64_t words = model.words;
        int64_t said = step_words(&s->mesh, &s->shape, &s->placements[at], &steps[i]);
        model_step(&model, s, &steps[i], what);
        ck_assert_msg(model.words - words == said, "%s: %s reads %ld words, said were %ld", what,
                      step_name(steps[i].kind), (long)(model.words - words), (long)said);
        int next = find_placement(s, &steps[i].to);
        ck_assert_msg(next >= 0, "%s: step %d leads to no legal placement", what, i);
        int64_t single = undone(s, at, next, steps[i].kind);
        ck_assert_msg(single >= 0, "%s: %s is no sequence of single steps", what,
                      step_name(steps[i].kind));
        cost += single;
        at = next;
        ck_assert(i + 1 < count || at == to);
    }
    ck_assert_msg(cost == costs[to], "%s: costs %ld, there is a way for %ld", what, (long)cost,
                  (long)costs[to]);
    model_check(&model, s, b, what);
    model_finish(&model);
}

/* Every pair where they are few or in a soak; else some that are drawn. */
START_TEST(a_path_keeps_the_whole_and_is_the_cheapest)
{
    struct situation *s = situation_create(_i);
    int64_t *costs = xcalloc((size_t)s->count, sizeof *costs);
    bool all = test_soak() || s->count * s->count <= 4 * PAIRS;
    int sources = all ? s->count : 6;
    for (int i = 0; i < sources; i++) {
        int from = all ? i : below(s, s->count);
        exhaust(s, from, costs);
        for (int j = 0; j < (all ? s->count : PAIRS / 6); j++)
            check_pair(s, from, all ? j : below(s, s->count), costs);
    }
    free(costs);
    situation_destroy(s);
}
END_TEST

/* ---- steps, boxes, groups ---- */

struct enumeration {
    const struct situation *s;
    int from;
    bool *seen;
};

static void check_step(void *context, const struct step *step)
{
    struct enumeration *e = context;
    int to = find_placement(e->s, &step->to);
    if (to < 0)
        return; /* does not divide */
    const char *what = describe(e->s, &e->s->placements[e->from], &step->to);
    enum step_kind kind;
    bool single = single_step(&e->s->placements[e->from], &step->to, &kind);
    ck_assert_msg(single && kind == step->kind, "%s: %s is no single step", what,
                  step_name(step->kind));
    ck_assert_msg(!e->seen[to], "%s: found twice", what);
    e->seen[to] = true;
}

START_TEST(every_single_step_is_enumerated_once)
{
    struct situation *s = situation_create(_i);
    bool *seen = xcalloc((size_t)s->count, sizeof *seen);
    for (int from = 0; from < s->count; from++) {
        memset(seen, 0, (size_t)s->count * sizeof *seen);
        step_enumerate(&s->mesh, &s->shape, &s->placements[from], check_step,
                       &(struct enumeration){s, from, seen});
        for (int to = 0; to < s->count; to++)
            ck_assert_msg(seen[to] == (s->costs[from * s->count + to] >= 0), "%s",
                          describe(s, &s->placements[from], &s->placements[to]));
    }
    free(seen);
    situation_destroy(s);
}
END_TEST

/* Along the minor-most axis of a dim the boxes follow each other and fill the box without it. */
static void check_nesting(const struct situation *s, const struct placement *placement, int dim)
{
    struct placement outer = stripped(placement, dim);
    int axis = placement->axis[dim][placement->count[dim] - 1], members[RANKS_MAX];
    const char *what = describe(s, placement, &outer);
    for (int rank = 0; rank < mesh_count(&s->mesh); rank++) {
        struct box whole = placement_slice(&s->mesh, &s->shape, &outer, rank);
        mesh_group(&s->mesh, rank, 1u << axis, members);
        int64_t next = whole.low[dim];
        for (int i = 0; i < s->mesh.size[axis]; i++) {
            struct box part = placement_slice(&s->mesh, &s->shape, placement, members[i]);
            ck_assert_msg(part.low[dim] == next && part.high[dim] >= next, "%s: rank %d", what,
                          members[i]);
            next = part.high[dim];
            part.low[dim] = whole.low[dim];
            part.high[dim] = whole.high[dim];
            ck_assert_msg(box_equal(&part, &whole), "%s: rank %d", what, members[i]);
        }
        ck_assert_msg(next == whole.high[dim], "%s: rank %d", what, rank);
    }
}

START_TEST(boxes_nest_axis_by_axis)
{
    struct situation *s = situation_create(_i);
    for (int i = 0; i < s->count; i++)
        for (int dim = 0; dim < s->shape.dims; dim++)
            if (s->placements[i].count[dim] > 0)
                check_nesting(s, &s->placements[i], dim);
    situation_destroy(s);
}
END_TEST

START_TEST(a_share_is_the_weight_behind_a_coordinate)
{
    /* Two axes of 2: ranks 0 and 2 are behind coordinate 0 of axis 0, 0 and 1 of axis 1. */
    static const int weights[] = {1, 3, 2, 2};
    struct mesh mesh = {.axes = 2, .size = {2, 2}, .weights = weights};
    struct sizes sizes = {0};
    sizes_set(&sizes, 'b', 16);
    struct shape shape = shape_of("b", &sizes);
    struct placement placement = {0};
    placement_append(&placement, 0, 1); /* 4 to 4 of 8 */
    placement_append(&placement, 0, 0); /* 1 to 3 of 4, and 2 to 2 of 4 */
    static const int64_t cuts[] = {0, 2, 8, 12, 16};
    for (int rank = 0; rank < 4; rank++) {
        struct box box = placement_slice(&mesh, &shape, &placement, rank);
        ck_assert_int_eq(box.low[0], cuts[rank]);
        ck_assert_int_eq(box.high[0], cuts[rank + 1]);
    }
}
END_TEST

START_TEST(a_group_is_the_same_list_on_all_its_members)
{
    struct situation *s = situation_create(_i);
    int members[RANKS_MAX], theirs[RANKS_MAX];
    for (unsigned axes = 0; axes < 1u << s->mesh.axes; axes++)
        for (int rank = 0; rank < mesh_count(&s->mesh); rank++) {
            int span = mesh_span(&s->mesh, axes), own = mesh_group(&s->mesh, rank, axes, members);
            ck_assert_int_eq(members[own], rank);
            for (int i = 0; i < span; i++) {
                ck_assert(i == 0 || members[i] > members[i - 1]);
                ck_assert_int_eq(mesh_group(&s->mesh, members[i], axes, theirs), i);
                ck_assert(memcmp(members, theirs, (size_t)span * sizeof *members) == 0);
                for (int axis = 0; axis < s->mesh.axes; axis++)
                    ck_assert(axes >> axis & 1 || mesh_coordinate(&s->mesh, rank, axis) ==
                                                      mesh_coordinate(&s->mesh, members[i], axis));
            }
        }
    situation_destroy(s);
}
END_TEST

int main(void)
{
    TCase *paths = tcase_create("paths");
    tcase_set_timeout(paths, 60);
    tcase_add_loop_test(paths, a_path_keeps_the_whole_and_is_the_cheapest, 0, test_share(60));
    TCase *parts = tcase_create("parts");
    tcase_set_timeout(parts, 60);
    tcase_add_loop_test(parts, every_single_step_is_enumerated_once, 0, test_share(18));
    tcase_add_loop_test(parts, boxes_nest_axis_by_axis, 0, test_share(18));
    tcase_add_loop_test(parts, a_group_is_the_same_list_on_all_its_members, 0, test_share(18));
    tcase_add_test(parts, a_share_is_the_weight_behind_a_coordinate);
    return suite_run("redistribute", paths, parts, NULL);
}
