/* test_stalls.c - of ranks that wait for each other one is named: the one that never came, the one
 * that came and is not heard, the one whose process is stopped; and none while somebody moves on.
 */
#include "coordinator/stalls/stalls.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

#define RANKS 4
#define LIMIT_MS 10000
#define LONG_MS 12000
#define GROUP 77

static struct stall_position ranks[RANKS];
static struct stall_verdict verdict;

static bool judge(void)
{
    return stall_judge(ranks, RANKS, LIMIT_MS, false, &verdict);
}

static void is_in(size_t rank, uint64_t number, int awaits)
{
    struct stall_position *at = &ranks[rank];
    *at = (struct stall_position){.known = true,
                                  .inside = true,
                                  .exchanges = true,
                                  .group = GROUP,
                                  .number = number,
                                  .step = 4,
                                  .awaits = awaits,
                                  .held_ms = LONG_MS,
                                  .past_count = 1};
    at->past[0].group = GROUP;
    at->past[0].number = number;
    snprintf(at->call, sizeof at->call, "all_reduce of {0,1,2,3}");
}

static void computes(size_t rank, uint64_t has_come_to)
{
    is_in(rank, has_come_to, -1);
    ranks[rank].exchanges = false;
    snprintf(ranks[rank].call, sizeof ranks[rank].call, "linear of layers.1");
}

/* 0, 1 and 3 are in call 9 and wait for rank 2. */
static void all_wait_for_two(void)
{
    for (size_t i = 0; i < RANKS; i++)
        is_in(i, 9, 2);
}

static void names(size_t rank, enum stall_kind kind, const char *words)
{
    ck_assert(judge());
    ck_assert_uint_eq(verdict.rank, rank);
    ck_assert_int_eq(verdict.kind, kind);
    ck_assert_msg(strstr(verdict.words, words) != NULL, "%s", verdict.words);
}

START_TEST(one_that_never_came_holds_up_the_others)
{
    all_wait_for_two();
    computes(2, 8);
    names(2, STALL_ABSENT,
          "has held up 3 ranks in all_reduce of {0,1,2,3} (step 5, call 9) for 12.0 s: "
          "it has not arrived there; it is in linear of layers.1 of step 5");
    ck_assert(verdict.ends);
}
END_TEST

START_TEST(one_that_came_and_is_waited_for_by_most_has_lost_its_network)
{
    all_wait_for_two();
    is_in(2, 9, 0);
    names(2, STALL_CUT_OFF, "it has arrived there, but nothing that it sends does");
}
END_TEST

START_TEST(one_that_waits_for_another_is_not_to_blame)
{
    all_wait_for_two();
    is_in(2, 8, 3);
    computes(3, 7);
    names(3, STALL_ABSENT, "(step 5, call 8)");
    ck_assert_uint_eq(verdict.waiting, 3);
}
END_TEST

START_TEST(a_stopped_process_is_to_blame_wherever_it_is)
{
    all_wait_for_two();
    is_in(2, 9, 0);
    ranks[2].stopped = true;
    ranks[2].stopped_ms = LIMIT_MS - 1;
    ck_assert(!judge());
    ranks[2].stopped_ms = LIMIT_MS;
    names(2, STALL_STOPPED, "its process is stopped; it is in all_reduce");
}
END_TEST

START_TEST(nobody_is_to_blame_while_the_last_one_moves_on)
{
    all_wait_for_two();
    ranks[2].known = false;
    ck_assert(!judge());
    computes(2, 8);
    ranks[2].held_ms = LIMIT_MS - 1;
    ck_assert(!judge());
    computes(2, 8); /* and it is not only this one that has to be there for long enough */
    for (size_t i = 0; i < RANKS; i++)
        if (i != 2)
            ranks[i].held_ms = LIMIT_MS - 1;
    ck_assert(!judge());
}
END_TEST

START_TEST(one_between_two_steps_is_named_and_left_alone)
{
    all_wait_for_two();
    computes(2, 8);
    ranks[2].inside = false;
    names(2, STALL_ABSENT, "it is after linear of layers.1");
    ck_assert(!verdict.ends);
}
END_TEST

START_TEST(where_the_job_begins_only_a_stopped_process_is_to_blame)
{
    all_wait_for_two();
    computes(2, 8);
    ck_assert(!stall_judge(ranks, RANKS, LIMIT_MS, true, &verdict));
    ranks[1] = (struct stall_position){.known = true, .stopped = true, .stopped_ms = LONG_MS};
    ck_assert(stall_judge(ranks, RANKS, LIMIT_MS, true, &verdict));
    ck_assert_uint_eq(verdict.rank, 1);
    ck_assert_msg(strstr(verdict.words, "it has not started its first step") != NULL, "%s",
                  verdict.words);
}
END_TEST

START_TEST(a_verdict_is_told_once_and_old_news_tells_nothing)
{
    const struct stall_limits limits = {LIMIT_MS, 3000};
    struct stalls stalls = {0};
    all_wait_for_two();
    computes(2, 8);
    for (size_t i = 0; i < RANKS; i++)
        stalls_hear(&stalls, 1, RANKS, i, &ranks[i], 1000 * i);
    ck_assert(!stalls_judge(&stalls, &limits, false, 9000, &verdict));
    for (size_t i = 0; i < RANKS; i++)
        stalls_hear(&stalls, 1, RANKS, i, &ranks[i], 10000);
    ck_assert(stalls_judge(&stalls, &limits, false, 11000, &verdict));
    ck_assert(!stalls_judge(&stalls, &limits, false, 11000, &verdict));
    for (size_t i = 0; i < RANKS; i++) /* the next epoch is another story */
        stalls_hear(&stalls, 2, RANKS, i, &ranks[i], 12000);
    ck_assert(stalls_judge(&stalls, &limits, false, 12000, &verdict));
    stalls_hear(&stalls, 3, RANKS, 2, NULL, 13000);
    ck_assert(!stalls_judge(&stalls, &limits, false, 13000, &verdict));
    stalls_finish(&stalls);
}
END_TEST

SUITE(stalls)
{
    TCase *tcase = tcase_create("stalls");
    tcase_add_test(tcase, one_that_never_came_holds_up_the_others);
    tcase_add_test(tcase, one_that_came_and_is_waited_for_by_most_has_lost_its_network);
    tcase_add_test(tcase, one_that_waits_for_another_is_not_to_blame);
    tcase_add_test(tcase, a_stopped_process_is_to_blame_wherever_it_is);
    tcase_add_test(tcase, nobody_is_to_blame_while_the_last_one_moves_on);
    tcase_add_test(tcase, one_between_two_steps_is_named_and_left_alone);
    tcase_add_test(tcase, where_the_job_begins_only_a_stopped_process_is_to_blame);
    tcase_add_test(tcase, a_verdict_is_told_once_and_old_news_tells_nothing);
    return suite_run("stalls", tcase, NULL);
}
