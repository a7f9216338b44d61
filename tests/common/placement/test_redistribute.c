/* test_redistribute.c - a path of steps, executed on simulated ranks, leaves the whole tensor as
 * it was, is as cheap as any, and moves as many words as it says. */
#include "common/base/memory.h"
#include "common/placement/redistribute.h"
#include "tests/common/placement/boxes.h"
#include "tests/common/placement/situation.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS 48 /* of placements drawn from one mesh and shape */

static void check_pair(struct situation *s, int from, int to, const int64_t *costs)
{
    const struct placement *a = &s->placements[from], *b = &s->placements[to];
    const char *what = situation_describe(s, a, b);
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

    struct boxes boxes = {.words = 0};
    boxes_fill(&boxes, s, a);
    int64_t cost = 0;
    for (int i = 0, at = from; i < count; i++) {
        int64_t words = boxes.words;
        int64_t said = step_words(&s->mesh, &s->shape, &s->placements[at], &steps[i]);
        boxes_step(&boxes, s, &steps[i], what);
        ck_assert_msg(boxes.words - words == said, "%s: %s reads %ld words, said were %ld", what,
                      step_name(steps[i].kind), (long)(boxes.words - words), (long)said);
        int next = situation_find(s, &steps[i].to);
        ck_assert_msg(next >= 0, "%s: step %d leads to no legal placement", what, i);
        int64_t single = situation_undone(s, at, next, steps[i].kind);
        ck_assert_msg(single >= 0, "%s: %s is no sequence of single steps", what,
                      step_name(steps[i].kind));
        cost += single;
        at = next;
        ck_assert(i + 1 < count || at == to);
    }
    ck_assert_msg(cost == costs[to], "%s: costs %ld, there is a way for %ld", what, (long)cost,
                  (long)costs[to]);
    boxes_check(&boxes, s, b, what);
    boxes_finish(&boxes);
}

/* Every pair where they are few or in a soak; else some that are drawn. */
START_TEST(a_path_keeps_the_whole_and_is_the_cheapest)
{
    struct situation *s = situation_create(_i);
    int64_t *costs = xcalloc((size_t)s->count, sizeof *costs);
    bool all = test_soak() || s->count * s->count <= 4 * PAIRS;
    int sources = all ? s->count : 6;
    for (int i = 0; i < sources; i++) {
        int from = all ? i : situation_draw(s, s->count);
        situation_exhaust(s, from, costs);
        for (int j = 0; j < (all ? s->count : PAIRS / 6); j++)
            check_pair(s, from, all ? j : situation_draw(s, s->count), costs);
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
    int to = situation_find(e->s, &step->to);
    if (to < 0)
        return; /* does not divide */
    const char *what = situation_describe(e->s, &e->s->placements[e->from], &step->to);
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
                          situation_describe(s, &s->placements[from], &s->placements[to]));
    }
    free(seen);
    situation_destroy(s);
}
END_TEST

/* Along the minor-most axis of a dim the boxes follow each other and fill the box without it. */
static void check_nesting(const struct situation *s, const struct placement *placement, int dim)
{
    struct placement outer = without_minor(placement, dim);
    int axis = placement->axis[dim][placement->count[dim] - 1], members[RANKS_MAX];
    const char *what = situation_describe(s, placement, &outer);
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
    struct shape shape = shape_of(&(struct tensor){.dims = "b"}, 16);
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

SUITE(redistribute)
{
    TCase *paths = tcase_create("paths");
    tcase_set_timeout(paths, 60);
    tcase_add_loop_test(paths, a_path_keeps_the_whole_and_is_the_cheapest, 0, test_share(40));
    TCase *parts = tcase_create("parts");
    tcase_set_timeout(parts, 60);
    tcase_add_loop_test(parts, every_single_step_is_enumerated_once, 0, test_share(18));
    tcase_add_loop_test(parts, boxes_nest_axis_by_axis, 0, test_share(18));
    tcase_add_loop_test(parts, a_group_is_the_same_list_on_all_its_members, 0, test_share(18));
    tcase_add_test(parts, a_share_is_the_weight_behind_a_coordinate);
    return suite_run("redistribute", paths, parts, NULL);
}
