/* test_silence.c - workers that are not heard of: suspect, lost, forgotten, or excused. */
#include "tests/coordinator/membership_fixture.h"

#include <errno.h>

START_TEST(silent_worker_is_suspect_then_lost)
{
    join("node-a", 1, 1, 1000);
    events_are("joined node-a 1");
    ck_assert_uint_eq(membership_next_ms(members), 4000);
    membership_expire(members, 3999, &events);
    events_are("");
    state_is("node-a", "ALIVE");
    membership_expire(members, 4000, &events);
    events_are("suspected node-a 1: silent for 3.00 s");
    state_is("node-a", "SUSPECT");
    ck_assert_uint_eq(membership_next_ms(members), 6000);
    membership_expire(members, 5999, &events);
    events_are("");
    membership_expire(members, 6000, &events);
    events_are("lost node-a 1: silent for 5.00 s");
    state_is("node-a", "LOST");
    ck_assert_str_eq(membership_find(members, "node-a")->lost_reason, "silent for 5.00 s");
    membership_expire(members, 6001, &events);
    events_are("");
}
END_TEST

/* Of this instance, and of no other. */
START_TEST(a_call_without_a_heartbeat_is_a_sign_of_life)
{
    join("node-a", 1, 1, 0);
    hear("node-a", 1, true, 2900);
    membership_expire(members, 5899, &events);
    events_are("joined node-a 1");
    hear("node-a", 2, true, 5899);
    hear("node-b", 1, true, 5899);
    membership_expire(members, 5900, &events);
    events_are("suspected node-a 1: silent for 3.00 s");
    hear("node-a", 1, true, 7899);
    events_are("recovered node-a 1");
    ck_assert_uint_eq(membership_next_ms(members), 10899);
}
END_TEST

START_TEST(a_suspect_that_does_not_follow_lives_and_stays_one)
{
    join("node-a", 1, 1, 0);
    membership_expire(members, 4000, &events);
    hear("node-a", 1, false, 4500);
    state_is("node-a", "SUSPECT");
    membership_expire(members, 9499, &events);
    events_are("joined node-a 1; suspected node-a 1: silent for 4.00 s");
    membership_expire(members, 9500, &events);
    events_are("lost node-a 1: silent for 5.00 s");
    hear("node-a", 1, true, 9600);
    state_is("node-a", "LOST");
}
END_TEST

START_TEST(a_heartbeat_makes_a_suspect_well)
{
    join("node-a", 1, 1, 0);
    membership_expire(members, 4000, &events);
    ck_assert_int_eq(beat("node-a", 1, 4500), 0);
    events_are("joined node-a 1; suspected node-a 1: silent for 4.00 s; recovered node-a 1");
    membership_expire(members, 7000, &events);
    events_are("");
    state_is("node-a", "ALIVE");
}
END_TEST

START_TEST(a_clock_that_stood_still_loses_through_suspicion)
{
    join("node-a", 1, 1, 0);
    membership_expire(members, 60000, &events);
    events_are("joined node-a 1; suspected node-a 1: silent for 60.00 s; lost node-a 1: silent "
               "for 60.00 s");
}
END_TEST

START_TEST(a_coordinator_that_was_busy_counts_no_silence)
{
    join("node-a", 1, 1, 1000);
    events_are("joined node-a 1");
    membership_excuse(members, 6000, 8000); /* silent for one second before */
    membership_expire(members, 8000, &events);
    events_are("");
    ck_assert_uint_eq(membership_next_ms(members), 10000);
    membership_excuse(members, 999, 8999); /* too short to matter */
    ck_assert_uint_eq(membership_next_ms(members), 10000);
    membership_excuse(members, 6000, 9000); /* heard of meanwhile */
    ck_assert_uint_eq(membership_next_ms(members), 12000);
    membership_expire(members, 14000, &events);
    events_are("suspected node-a 1: silent for 5.00 s; lost node-a 1: silent for 5.00 s");
    membership_excuse(members, 6000, 14000);
    state_is("node-a", "LOST");
}
END_TEST

START_TEST(a_late_heartbeat_does_not_turn_time_back)
{
    join("node-a", 1, 1, 5000);
    ck_assert_int_eq(beat("node-a", 1, 1000), 0);
    ck_assert_uint_eq(membership_next_ms(members), 8000);
}
END_TEST

START_TEST(a_closed_connection_loses_at_once)
{
    join("node-a", 1, 1, 0);
    membership_disconnect(members, "node-a", 7, 1, &events);
    membership_disconnect(members, "node-b", 1, 1, &events);
    events_are("joined node-a 1");
    membership_disconnect(members, "node-a", 1, 2, &events);
    membership_disconnect(members, "node-a", 1, 3, &events);
    events_are("lost node-a 1: its connection closed");
}
END_TEST

START_TEST(a_connection_that_closed_while_nobody_listened_loses_nobody_who_speaks)
{
    join("node-a", 1, 1, 0);
    join("node-b", 2, 1, 0);
    membership_excuse(members, 5000, 6000);
    ck_assert_int_eq(beat("node-a", 1, 6000), 0);
    membership_disconnect(members, "node-a", 1, 6001, &events);
    membership_disconnect(members, "node-b", 2, 6001, &events);
    events_are("joined node-a 1; joined node-b 2");
    ck_assert_int_eq(beat("node-a", 1, 9000), 0);
    membership_expire(members, 11000, &events);
    events_are("suspected node-b 2: silent for 6.00 s; lost node-b 2: silent for 6.00 s");
    membership_disconnect(members, "node-a", 1, 11000, &events); /* by now it was listened to */
    events_are("lost node-a 1: its connection closed");
}
END_TEST

START_TEST(who_is_put_out_is_lost_at_once_whoever_listened)
{
    join("node-a", 1, 1, 0);
    membership_excuse(members, 5000, 6000);
    membership_expel(members, "node-a", "its credential was revoked", 6001, &events);
    membership_expel(members, "node-a", "its credential was revoked", 6002, &events);
    membership_expel(members, "node-b", "its credential was revoked", 6002, &events);
    events_are("joined node-a 1; lost node-a 1: its credential was revoked");
}
END_TEST

START_TEST(the_dead_are_forgotten_after_a_while)
{
    join("node-a", 1, 1, 0);
    membership_disconnect(members, "node-a", 1, 1000, &events);
    ck_assert_uint_eq(membership_next_ms(members), 3601000);
    membership_expire(members, 3600999, &events);
    ck_assert_uint_eq(membership_count(members), 1);
    membership_expire(members, 3601000, &events);
    events_are("joined node-a 1; lost node-a 1: its connection closed; forgotten node-a 1");
    ck_assert_uint_eq(membership_count(members), 0);
    ck_assert_uint_eq(membership_next_ms(members), UINT64_MAX);
}
END_TEST

START_TEST(a_lease_shorter_than_three_heartbeats_is_refused)
{
    struct membership_config config = {.heartbeat_ms = 1000, .dead_ms = 3000, .forget_ms = 1};
    ck_assert_int_eq(membership_config_check(&config, &err), -EINVAL);
    ck_assert_str_eq(err.text, "a worker is lost after 3000 ms: it must be more than 3 heartbeats "
                               "of 1000 ms");
    config.heartbeat_ms = 0;
    ck_assert_int_eq(membership_config_check(&config, &err), -EINVAL);
    ck_assert_int_eq(membership_config_check(&MEMBERSHIP_CONFIG_DEFAULT, &err), 0);
}
END_TEST

SUITE(silence)
{
    TCase *tcase = tcase_create("silence");
    tcase_add_checked_fixture(tcase, members_setup, members_teardown);
    tcase_add_test(tcase, silent_worker_is_suspect_then_lost);
    tcase_add_test(tcase, a_heartbeat_makes_a_suspect_well);
    tcase_add_test(tcase, a_call_without_a_heartbeat_is_a_sign_of_life);
    tcase_add_test(tcase, a_suspect_that_does_not_follow_lives_and_stays_one);
    tcase_add_test(tcase, a_clock_that_stood_still_loses_through_suspicion);
    tcase_add_test(tcase, a_coordinator_that_was_busy_counts_no_silence);
    tcase_add_test(tcase, a_late_heartbeat_does_not_turn_time_back);
    tcase_add_test(tcase, a_closed_connection_loses_at_once);
    tcase_add_test(tcase, a_connection_that_closed_while_nobody_listened_loses_nobody_who_speaks);
    tcase_add_test(tcase, who_is_put_out_is_lost_at_once_whoever_listened);
    tcase_add_test(tcase, the_dead_are_forgotten_after_a_while);
    tcase_add_test(tcase, a_lease_shorter_than_three_heartbeats_is_refused);
    return suite_run("silence", tcase, NULL);
}
