/* test_kept_traces.c - of the steps that ranks tell of instruction by instruction the newest whole
 * one is kept, and never more than there is room for. */
#include "coordinator/telemetry/telemetry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "tests/support/suite.h"

#define RANKS 2

static struct traces traces;
static struct error err;

static void setup(void)
{
    traces = (struct traces){0};
}

static void teardown(void)
{
    traces_finish(&traces);
}

/* Instructions first to first + here of `count`: each begins at 10 times its number, for 5 ns. */
static struct trace_record make(uint32_t epoch, uint64_t step, size_t rank, uint64_t first,
                                size_t here, uint64_t count)
{
    static uint64_t begin_ns[TRACES_INSTRUCTIONS_MAX], end_ns[TRACES_INSTRUCTIONS_MAX];
    for (size_t i = 0; i < here && i < TRACES_INSTRUCTIONS_MAX; i++) {
        begin_ns[i] = 10 * (first + i);
        end_ns[i] = begin_ns[i] + 5;
    }
    return (struct trace_record){.epoch = epoch,
                                 .step = step,
                                 .rank = rank,
                                 .rank_count = RANKS,
                                 .unix_ns = 1000 + rank,
                                 .total = count,
                                 .count = count,
                                 .first = first,
                                 .begin_ns = begin_ns,
                                 .end_ns = end_ns,
                                 .here = here};
}

static int add(uint32_t epoch, uint64_t step, size_t rank, uint64_t first, size_t here,
               uint64_t count)
{
    struct trace_record record = make(epoch, step, rank, first, here, count);
    return traces_add(&traces, &record, &err);
}

START_TEST(a_step_is_whole_when_all_ranks_have_told_all_of_it)
{
    ck_assert_int_eq(add(1, 4, 0, 0, 3, 5), 0);
    ck_assert_int_eq(add(1, 4, 1, 0, 2, 2), 0);
    ck_assert_uint_eq(traces.newest.step, 0);
    ck_assert_int_eq(add(1, 4, 0, 3, 2, 5), 0);
    ck_assert_uint_eq(traces.newest.step, 4);
    ck_assert_uint_eq(traces.newest.rank_count, RANKS);
    ck_assert_uint_eq(traces.newest.ranks[0].count, 5);
    ck_assert_uint_eq(traces.newest.ranks[0].begin_ns[4], 40);
    ck_assert_uint_eq(traces.newest.ranks[0].end_ns[4], 45);
    ck_assert_uint_eq(traces.newest.ranks[1].unix_ns, 1001);
    ck_assert_uint_eq(traces.arriving.step, 0);
}
END_TEST

START_TEST(a_newer_step_takes_the_place_of_one_that_is_not_whole)
{
    ck_assert_int_eq(add(1, 4, 0, 0, 1, 1), 0);
    ck_assert_int_eq(add(1, 8, 1, 0, 1, 1), 0);
    ck_assert_int_eq(add(1, 4, 1, 0, 1, 1), -ESTALE);
    ck_assert_int_eq(add(1, 8, 0, 0, 1, 1), 0);
    ck_assert_uint_eq(traces.newest.step, 8);
    ck_assert_int_eq(add(1, 8, 0, 0, 1, 1), -ESTALE); /* told again */
    ck_assert_int_eq(add(1, 4, 0, 0, 1, 1), -ESTALE);
}
END_TEST

START_TEST(a_new_epoch_may_go_back)
{
    ck_assert_int_eq(add(1, 8, 0, 0, 1, 1), 0);
    ck_assert_int_eq(add(1, 8, 1, 0, 1, 1), 0);
    ck_assert_int_eq(add(2, 2, 0, 0, 1, 1), 0);
    ck_assert_int_eq(add(1, 16, 0, 0, 1, 1), -ESTALE);
    ck_assert_uint_eq(traces.newest.step, 8);
    ck_assert_int_eq(add(2, 2, 1, 0, 1, 1), 0);
    ck_assert_uint_eq(traces.newest.step, 2);
    ck_assert_uint_eq(traces.newest.epoch, 2);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    struct trace_record record = make(1, 4, 0, 0, 2, 2);
    ck_assert_int_eq(add(1, 0, 0, 0, 1, 1), -EINVAL);
    ck_assert_int_eq(add(1, 4, RANKS, 0, 1, 1), -EINVAL);
    ck_assert_int_eq(add(1, 4, 0, 0, 3, 2), -EINVAL);
    ck_assert_int_eq(add(1, 4, 0, 3, 0, 2), -EINVAL);
    ck_assert_int_eq(add(1, 4, 0, 0, 1, TRACES_INSTRUCTIONS_MAX + 1), -EINVAL);
    record.count = 3; /* more than its total */
    ck_assert_int_eq(traces_add(&traces, &record, &err), -EINVAL);
    record = make(1, 4, 0, 0, 2, 2);
    record.end_ns = record.begin_ns;
    record.begin_ns = make(1, 4, 0, 0, 2, 2).end_ns;
    ck_assert_int_eq(traces_add(&traces, &record, &err), -EINVAL);
    ck_assert_str_eq(err.text, "instruction 0 of a trace ends before it begins");
    ck_assert_int_eq(add(1, 4, 0, 1, 1, 2), -EINVAL); /* the first is missing */
    ck_assert_int_eq(add(1, 4, 0, 0, 1, 2), 0);
    ck_assert_int_eq(add(1, 4, 0, 1, 1, 3), -EINVAL); /* they were two */
    ck_assert_int_eq(add(1, 4, 0, 0, 1, 2), -EINVAL);
}
END_TEST

START_TEST(ranks_beyond_the_limit_are_kept_without_their_times)
{
    enum { MANY = TRACES_BYTES_MAX / (TRACES_INSTRUCTIONS_MAX * 16) + 2 };
    for (size_t rank = 0; rank < MANY; rank++) {
        struct trace_record record =
            make(1, 4, rank, 0, TRACES_INSTRUCTIONS_MAX, TRACES_INSTRUCTIONS_MAX);
        record.rank_count = MANY;
        ck_assert_int_eq(traces_add(&traces, &record, &err), 0);
        ck_assert_uint_le(traces_bytes(&traces), TRACES_BYTES_MAX);
    }
    ck_assert_uint_eq(traces.newest.step, 4);
    ck_assert_uint_eq(traces.newest.ranks[MANY - 3].count, TRACES_INSTRUCTIONS_MAX);
    ck_assert_uint_eq(traces.newest.ranks[MANY - 1].count, 0);
    ck_assert_uint_eq(traces.newest.ranks[MANY - 1].total, TRACES_INSTRUCTIONS_MAX);
}
END_TEST

/* The newest of every job, until all together are too many: then the first job's goes. */
START_TEST(jobs_together_keep_no_more_than_there_is_room_for)
{
    enum { BYTES = TRACES_INSTRUCTIONS_MAX * 16, JOBS = TELEMETRY_TRACE_BYTES_MAX / BYTES + 1 };
    struct telemetry *telemetry = telemetry_create(&TELEMETRY_CONFIG_DEFAULT);
    char id[32];
    for (size_t i = 0; i < JOBS; i++) {
        struct trace_record record =
            make(1, 4, 0, 0, TRACES_INSTRUCTIONS_MAX, TRACES_INSTRUCTIONS_MAX);
        record.rank_count = 1;
        snprintf(id, sizeof id, "j-%zu", i);
        ck_assert_int_eq(telemetry_trace(telemetry, id, &record, &err), 0);
    }
    ck_assert_uint_eq(telemetry_find(telemetry, "j-0")->traces.newest.step, 0);
    ck_assert_uint_eq(telemetry_find(telemetry, "j-1")->traces.newest.step, 4);
    ck_assert_uint_eq(telemetry_find(telemetry, id)->traces.newest.step, 4);
    telemetry_destroy(telemetry);
}
END_TEST

SUITE(kept_traces)
{
    TCase *tcase = tcase_create("kept");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_step_is_whole_when_all_ranks_have_told_all_of_it);
    tcase_add_test(tcase, a_newer_step_takes_the_place_of_one_that_is_not_whole);
    tcase_add_test(tcase, a_new_epoch_may_go_back);
    tcase_add_test(tcase, what_cannot_be_is_refused);
    tcase_add_test(tcase, ranks_beyond_the_limit_are_kept_without_their_times);
    tcase_add_test(tcase, jobs_together_keep_no_more_than_there_is_room_for);
    return suite_run("kept_traces", tcase, NULL);
}
