/* test_boxes.c - which instructions are one box, and which boxes are left out. */
#include "coordinator/picture/boxes.h"

#include "tests/support/suite.h"

#define GAP_S 0.5

static struct boxes boxes;

static const struct box_place forward = {SECTION_FORWARD, QUEUE_COMPUTE, BOX_COMPUTE, 0},
                              waiting = {SECTION_FORWARD, QUEUE_COMPUTE, BOX_COMMUNICATION, 0},
                              beside = {SECTION_FORWARD, QUEUE_COMMUNICATION, BOX_COMMUNICATION, 0},
                              next = {SECTION_FORWARD, QUEUE_COMPUTE, BOX_COMPUTE, 1},
                              backward = {SECTION_BACKWARD, QUEUE_COMPUTE, BOX_COMPUTE, 0};

static void setup(void)
{
    boxes = (struct boxes){0};
}

static void teardown(void)
{
    boxes_finish(&boxes);
}

static void add(const struct box_place *place, double begin_s, double end_s)
{
    boxes_add(&boxes, place, begin_s, end_s, GAP_S);
}

START_TEST(what_follows_at_once_is_the_same_box)
{
    add(&forward, 0, 1);
    add(&forward, 1, 2);
    add(&forward, 2.4, 3);
    ck_assert_uint_eq(boxes.count, 1);
    ck_assert_double_eq(boxes.items[0].begin_s, 0);
    ck_assert_double_eq(boxes.items[0].end_s, 3);
    ck_assert_double_eq_tol(boxes.busy_s, 2.6, 1e-12);
}
END_TEST

START_TEST(what_waits_in_between_is_another_box)
{
    add(&forward, 0, 1);
    add(&forward, 1.5, 2);
    ck_assert_uint_eq(boxes.count, 2);
}
END_TEST

START_TEST(sections_and_micro_batches_are_boxes_of_their_own)
{
    add(&forward, 0, 1);
    add(&next, 1, 2);
    add(&backward, 2, 3);
    add(&forward, 3, 4);
    ck_assert_uint_eq(boxes.count, 4);
}
END_TEST

START_TEST(what_moves_beside_does_not_end_what_computes)
{
    add(&forward, 0, 1);
    add(&waiting, 1, 1.2);
    add(&beside, 0.5, 1.6);
    add(&forward, 1.2, 2);
    add(&waiting, 2, 2.1); /* a whole box later */
    ck_assert_uint_eq(boxes.count, 4);
    boxes_settle(&boxes, 0);
    ck_assert_uint_eq(boxes.items[0].place.lane, BOX_COMPUTE);
    ck_assert_double_eq(boxes.items[0].end_s, 2);
    ck_assert_double_eq(boxes.items[1].begin_s, 0.5);
    ck_assert_double_eq(boxes.items[2].begin_s, 1);
    ck_assert_double_eq(boxes.items[3].begin_s, 2);
    ck_assert_double_eq_tol(boxes.busy_s, 1.8, 1e-12);
}
END_TEST

START_TEST(what_takes_no_time_is_no_box)
{
    add(&forward, 1, 1);
    ck_assert_uint_eq(boxes.count, 0);
}
END_TEST

START_TEST(short_boxes_are_left_out_and_counted)
{
    add(&forward, 0, 1);
    add(&next, 1, 1.1);
    add(&backward, 2, 2.2);
    add(&next, 3, 4);
    boxes_settle(&boxes, 0.5);
    ck_assert_uint_eq(boxes.count, 2);
    ck_assert_uint_eq(boxes.left_out, 2);
    ck_assert_double_eq_tol(boxes.left_out_s, 0.3, 1e-12);
    ck_assert_double_eq_tol(boxes.busy_s, 2.3, 1e-12);
    ck_assert_double_eq(boxes.items[1].begin_s, 3);
}
END_TEST

SUITE(boxes)
{
    TCase *tcase = tcase_create("boxes");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_follows_at_once_is_the_same_box);
    tcase_add_test(tcase, what_waits_in_between_is_another_box);
    tcase_add_test(tcase, sections_and_micro_batches_are_boxes_of_their_own);
    tcase_add_test(tcase, what_moves_beside_does_not_end_what_computes);
    tcase_add_test(tcase, what_takes_no_time_is_no_box);
    tcase_add_test(tcase, short_boxes_are_left_out_and_counted);
    return suite_run("boxes", tcase, NULL);
}
