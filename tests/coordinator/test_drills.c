/* test_drills.c - every fault is found by its name, and takes the times that it needs. */
#include "coordinator/resources/drills.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

START_TEST(every_fault_has_a_name_by_which_it_is_found)
{
    const ProtobufCEnumDescriptor *numbers = &gimbal__drill_fault__descriptor;
    struct error err;
    for (unsigned i = 0; i < numbers->n_values; i++) {
        Gimbal__DrillFault number = (Gimbal__DrillFault)numbers->values[i].value, found;
        const struct drill_fault *fault = drill_fault(number);
        ck_assert_msg(fault && fault->name, "%s", numbers->values[i].name);
        ck_assert_int_eq(drill_find(fault->name, &found, &err), 0);
        ck_assert_int_eq((int)found, (int)number);
    }
    ck_assert_ptr_null(drill_fault((Gimbal__DrillFault)numbers->n_values));
    ck_assert_ptr_null(drill_fault((Gimbal__DrillFault)-1));
}
END_TEST

START_TEST(an_unknown_name_is_answered_with_those_that_are_known)
{
    Gimbal__DrillFault found;
    struct error err;
    ck_assert_int_eq(drill_find("flood", &found, &err), -EINVAL);
    ck_assert_str_eq(err.text, "unknown fault 'flood': write kill-executor, kill-worker, stop, "
                               "cut-link, slow-link or fill-disk");
}
END_TEST

static const struct {
    Gimbal__DrillFault fault;
    uint32_t for_ms, delay_ms;
    const char *words; /* of the refusal; NULL: there is none */
} times[] = {
    {GIMBAL__DRILL_FAULT__KILL_WORKER, 0, 0, NULL},
    {GIMBAL__DRILL_FAULT__KILL_WORKER, 1, 0, "kill-worker is done at once: it takes no time"},
    {GIMBAL__DRILL_FAULT__KILL_WORKER, 0, 1, "kill-worker takes no delay"},
    {GIMBAL__DRILL_FAULT__CUT_LINK, 3600000, 0, NULL},
    {GIMBAL__DRILL_FAULT__CUT_LINK, 0, 0, "cut-link takes a time, at most 3600 s"},
    {GIMBAL__DRILL_FAULT__CUT_LINK, 3600001, 0, "cut-link takes a time, at most 3600 s"},
    {GIMBAL__DRILL_FAULT__CUT_LINK, 1, 1, "cut-link takes no delay"},
    {GIMBAL__DRILL_FAULT__SLOW_LINK, 1, 60000, NULL},
    {GIMBAL__DRILL_FAULT__SLOW_LINK, 1, 0, "slow-link takes a delay, from 1 ms to 60 s"},
    {GIMBAL__DRILL_FAULT__SLOW_LINK, 1, 60001, "slow-link takes a delay, from 1 ms to 60 s"},
    {GIMBAL__DRILL_FAULT__FILL_DISK, 1, 0, NULL},
    {GIMBAL__DRILL_FAULT__FILL_DISK, 1, 1, "fill-disk takes no delay"},
};
#define TIMES ((int)(sizeof times / sizeof *times))

START_TEST(times_that_a_fault_does_not_take_are_refused)
{
    struct error err = {""};
    int rc =
        drill_check_times(drill_fault(times[_i].fault), times[_i].for_ms, times[_i].delay_ms, &err);
    ck_assert_int_eq(rc, times[_i].words ? -EINVAL : 0);
    ck_assert_str_eq(err.text, times[_i].words ? times[_i].words : "");
}
END_TEST

START_TEST(times_are_printed_where_there_are_any)
{
    Gimbal__DrillRequest request = GIMBAL__DRILL_REQUEST__INIT;
    char text[128];
    ck_assert_str_eq(drill_print_times(&request, text, sizeof text), "");
    request.for_ms = 10000;
    ck_assert_str_eq(drill_print_times(&request, text, sizeof text), " for 10.00 s");
    request.delay_ms = 200;
    ck_assert_str_eq(drill_print_times(&request, text, sizeof text), " by 200.00 ms for 10.00 s");
}
END_TEST

SUITE(drill_faults)
{
    TCase *tcase = tcase_create("faults");
    tcase_add_test(tcase, every_fault_has_a_name_by_which_it_is_found);
    tcase_add_test(tcase, an_unknown_name_is_answered_with_those_that_are_known);
    tcase_add_loop_test(tcase, times_that_a_fault_does_not_take_are_refused, 0, TIMES);
    tcase_add_test(tcase, times_are_printed_where_there_are_any);
    return suite_run("drill faults", tcase, NULL);
}
