/* test_membership.c - workers that come, fall silent, return and are refused. */
#include "coordinator/membership/membership.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"

static struct membership *members;
static struct membership_events events;
static struct error err;

static void setup(void)
{
    members = membership_create(&MEMBERSHIP_CONFIG_DEFAULT);
    events = (struct membership_events){0};
    err.text[0] = '\0';
}

static void teardown(void)
{
    membership_destroy(members);
    membership_events_finish(&events);
}

static int report(const char *name, const char *host, uint64_t instance, unsigned devices,
                  double flops, uint64_t now_ms)
{
    struct hardware_report *made = hardware_report_create(name, host, "EPYC", "0-3");
    struct hardware_device device = {
        .name = "EPYC", .cpuset = "0", .cores = 1, .memory_bytes = 1 << 30, .flops = flops};
    for (unsigned i = 0; i < devices; i++)
        hardware_report_add_device(made, &device);
    int rc = membership_report(members, instance, made, now_ms, &events, &err);
    hardware_report_destroy(made);
    return rc;
}

static void join(const char *name, uint64_t instance, unsigned devices, uint64_t now_ms)
{
    ck_assert_msg(report(name, "host-1", instance, devices, 0, now_ms) == 0, "%s", err.text);
}

static int beat(const char *name, uint64_t instance, uint64_t now_ms)
{
    return membership_heartbeat(members, name, instance, now_ms, &events, &err);
}

static void hear(const char *name, uint64_t instance, bool follows, uint64_t now_ms)
{
    membership_hear(members, name, instance, follows, now_ms, &events);
}

/* The events since the last call, as "joined node-a 1: reason; ...". */
static void events_are(const char *expected)
{
    char text[1024] = "";
    for (size_t i = 0; i < events.count; i++) {
        const struct membership_event *event = &events.items[i];
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s %s %llu%s%s", i ? "; " : "",
                 membership_event_name(event->kind), event->worker,
                 (unsigned long long)event->instance, event->reason[0] ? ": " : "", event->reason);
    }
    membership_events_clear(&events);
    ck_assert_str_eq(text, expected);
}

static void state_is(const char *name, const char *expected)
{
    const struct worker *worker = membership_find(members, name);
    ck_assert_ptr_nonnull(worker);
    ck_assert_str_eq(worker_state_name(worker_state(worker)), expected);
}

static struct device_ref ref(const char *worker, uint64_t instance, unsigned index)
{
    struct device_ref made = {.instance = instance, .index = index};
    snprintf(made.worker, sizeof made.worker, "%s", worker);
    return made;
}

/* "node-a/0=j-1 node-a/1= ..." */
static void holders_are(const char *expected)
{
    struct device_view *views;
    char text[512] = "";
    size_t count = membership_devices(members, &views);
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s/%u=%s", i ? " " : "", views[i].ref.worker,
                 views[i].ref.index, views[i].holder);
    }
    free(views);
    ck_assert_str_eq(text, expected);
}

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
    state_is("node-a", "DEAD");
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
    state_is("node-a", "DEAD");
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
    state_is("node-a", "DEAD");
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

START_TEST(a_restarted_worker_is_lost_before_it_joins)
{
    join("node-a", 1, 1, 0);
    join("node-a", 2, 2, 100);
    events_are("joined node-a 1; lost node-a 1: it was restarted; joined node-a 2");
    ck_assert_int_eq(beat("node-a", 1, 200), -ESTALE);
    ck_assert_str_eq(err.text, "worker 'node-a' was replaced by a newer instance of the same name");
    ck_assert_int_eq(report("node-a", "host-1", 1, 1, 0, 200), -ESTALE);
    events_are("");
    ck_assert_uint_eq(membership_count(members), 1);
}
END_TEST

START_TEST(a_lost_instance_never_returns)
{
    join("node-a", 1, 1, 0);
    membership_disconnect(members, "node-a", 1, 10, &events);
    ck_assert_int_eq(beat("node-a", 1, 20), -ESTALE);
    ck_assert_int_eq(report("node-a", "host-1", 1, 1, 0, 20), -ESTALE);
    ck_assert_str_eq(err.text,
                     "worker 'node-a' was given up as lost; it has to register as a new instance");
    join("node-a", 2, 1, 30);
    events_are("joined node-a 1; lost node-a 1: its connection closed; joined node-a 2");
}
END_TEST

START_TEST(two_hosts_with_one_name_are_told_which_has_it)
{
    join("node-a", 1, 1, 0);
    ck_assert_int_eq(report("node-a", "host-2", 2, 1, 0, 1), -EEXIST);
    ck_assert_str_eq(err.text, "the name 'node-a' belongs to a living worker on host 'host-1', and "
                               "this one is on host 'host-2': start it with another --name");
    membership_disconnect(members, "node-a", 1, 2, &events);
    ck_assert_int_eq(report("node-a", "host-2", 2, 1, 0, 3), 0);
    events_are("joined node-a 1; lost node-a 1: its connection closed; joined node-a 2");
}
END_TEST

START_TEST(new_figures_are_a_change_and_the_same_are_none)
{
    join("node-a", 1, 2, 0);
    ck_assert_int_eq(
        membership_hold(members, "j-1", (struct device_ref[]){ref("node-a", 1, 1)}, 1, &err), 0);
    join("node-a", 1, 2, 1);
    events_are("joined node-a 1");
    ck_assert_int_eq(report("node-a", "host-1", 1, 2, 5e9, 2), 0);
    events_are("changed node-a 1");
    ck_assert_double_eq(membership_find(members, "node-a")->report->devices[1].flops, 5e9);
    holders_are("node-a/0= node-a/1=j-1");
}
END_TEST

START_TEST(a_living_worker_cannot_change_its_devices)
{
    join("node-a", 1, 2, 0);
    ck_assert_int_eq(report("node-a", "host-1", 1, 1, 0, 1), -EINVAL);
    ck_assert_str_eq(err.text, "worker 'node-a' reports other devices than when it registered; it "
                               "has to restart to change them");
}
END_TEST

START_TEST(a_report_without_devices_or_instance_is_refused)
{
    ck_assert_int_eq(report("node-a", "host-1", 1, 0, 0, 0), -EINVAL);
    ck_assert_int_eq(report("node-a", "host-1", 0, 1, 0, 0), -EINVAL);
    ck_assert_int_eq(beat("node-a", 1, 0), -ENOENT);
    ck_assert_uint_eq(membership_count(members), 0);
}
END_TEST

START_TEST(workers_are_listed_by_name)
{
    join("node-c", 1, 1, 0);
    join("node-a", 2, 1, 0);
    join("node-b", 3, 1, 0);
    ck_assert_uint_eq(membership_count(members), 3);
    ck_assert_str_eq(membership_at(members, 0)->name, "node-a");
    ck_assert_str_eq(membership_at(members, 1)->name, "node-b");
    ck_assert_str_eq(membership_at(members, 2)->name, "node-c");
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

START_TEST(a_drain_survives_a_restart_of_the_worker)
{
    ck_assert_int_eq(membership_drain(members, "node-a", "fan", &events, &err), -ENOENT);
    join("node-a", 1, 1, 0);
    ck_assert_int_eq(membership_drain(members, "node-a", "fan", &events, &err), 0);
    ck_assert_int_eq(membership_drain(members, "node-a", "fan", &events, &err), 0);
    events_are("joined node-a 1; draining node-a 1: fan");
    membership_disconnect(members, "node-a", 1, 1, &events);
    membership_expire(members, 1ull << 40, &events);
    join("node-a", 2, 1, 2);
    state_is("node-a", "DRAINING");
    ck_assert_str_eq(membership_find(members, "node-a")->drain_reason, "fan");
    membership_events_clear(&events);
    ck_assert_int_eq(membership_undrain(members, "node-a", &events, &err), 0);
    ck_assert_int_eq(membership_undrain(members, "node-a", &events, &err), 0);
    events_are("undrained node-a 2");
    state_is("node-a", "ALIVE");
}
END_TEST

/* Workers are stored on events: a reason that is told by none is lost when the coordinator dies. */
START_TEST(another_reason_for_a_drain_is_told)
{
    join("node-a", 1, 1, 0);
    ck_assert_int_eq(membership_drain(members, "node-a", "fan", &events, &err), 0);
    ck_assert_int_eq(membership_drain(members, "node-a", "loud fan", &events, &err), 0);
    events_are("joined node-a 1; draining node-a 1: fan; draining node-a 1: loud fan");
    ck_assert_str_eq(membership_find(members, "node-a")->drain_reason, "loud fan");
}
END_TEST

/* Begin anew with what is stored of the worker. */
static void restart_with(const char *name, uint64_t now_ms)
{
    struct worker *stored = worker_copy(membership_find(members, name));
    membership_destroy(members);
    members = membership_create(&MEMBERSHIP_CONFIG_DEFAULT);
    membership_events_clear(&events);
    ck_assert_int_eq(membership_restore(members, stored, now_ms, &err), 0);
    ck_assert_int_eq(membership_restore(members, stored, now_ms, &err), -EEXIST);
    worker_destroy(stored);
}

START_TEST(a_restored_worker_is_suspect_until_it_is_heard_of)
{
    join("node-a", 1, 1, 500);
    ck_assert_int_eq(
        membership_hold(members, "j-1", (struct device_ref[]){ref("node-a", 1, 0)}, 1, &err), 0);
    ck_assert_int_eq(membership_drain(members, "node-a", "fan", &events, &err), 0);
    restart_with("node-a", 0);
    state_is("node-a", "SUSPECT");
    holders_are("node-a/0=");
    ck_assert_int_eq(beat("node-a", 1, 4000), 0);
    events_are("recovered node-a 1");
    state_is("node-a", "DRAINING");
    membership_expire(members, 9000, &events);
    events_are("suspected node-a 1: silent for 5.00 s; lost node-a 1: silent for 5.00 s");
}
END_TEST

START_TEST(a_lost_instance_does_not_return_to_a_restarted_coordinator_either)
{
    join("node-a", 1, 1, 0);
    membership_disconnect(members, "node-a", 1, 10, &events);
    restart_with("node-a", 20);
    state_is("node-a", "DEAD");
    ck_assert_int_eq(beat("node-a", 1, 30), -ESTALE);
    ck_assert_int_eq(report("node-a", "host-1", 1, 1, 0, 30), -ESTALE);
    join("node-a", 2, 1, 30);
    events_are("joined node-a 2");
}
END_TEST

START_TEST(a_device_is_held_by_one_job)
{
    join("node-a", 1, 2, 0);
    join("node-b", 2, 1, 0);
    struct device_ref refs[] = {ref("node-a", 1, 1), ref("node-b", 2, 0), ref("node-a", 1, 0)};
    ck_assert_int_eq(membership_hold(members, "j-1", refs, 2, &err), 0);
    holders_are("node-a/0= node-a/1=j-1 node-b/0=j-1");
    ck_assert_int_eq(membership_hold(members, "j-2", refs + 1, 2, &err), -EBUSY);
    ck_assert_str_eq(err.text, "device node-b/0 is held by j-1");
    holders_are("node-a/0= node-a/1=j-1 node-b/0=j-1");
    ck_assert_int_eq(membership_hold(members, "j-1", refs + 1, 2, &err), 0);
    holders_are("node-a/0=j-1 node-a/1= node-b/0=j-1");
    ck_assert_int_eq(membership_hold(members, "j-1", NULL, 0, &err), 0);
    holders_are("node-a/0= node-a/1= node-b/0=");
}
END_TEST

START_TEST(what_cannot_be_held_is_named_and_changes_nothing)
{
    join("node-a", 1, 2, 0);
    struct device_ref refs[] = {ref("node-a", 1, 0), ref("node-a", 1, 0), ref("node-a", 9, 1),
                                ref("node-a", 1, 2)};
    ck_assert_int_eq(membership_hold(members, "j-1", refs, 2, &err), -EINVAL);
    ck_assert_str_eq(err.text, "device node-a/0 is named twice");
    ck_assert_int_eq(membership_hold(members, "j-1", refs + 1, 2, &err), -ENOENT);
    ck_assert_str_eq(err.text, "device node-a/1 is gone");
    ck_assert_int_eq(membership_hold(members, "j-1", refs + 3, 1, &err), -ENOENT);
    ck_assert_int_eq(membership_hold(members, "", refs, 1, &err), -EINVAL);
    holders_are("node-a/0= node-a/1=");
}
END_TEST

START_TEST(a_lost_worker_offers_nothing_and_a_new_one_is_free)
{
    join("node-a", 1, 1, 0);
    struct device_ref old = ref("node-a", 1, 0), fresh = ref("node-a", 2, 0);
    ck_assert_int_eq(membership_hold(members, "j-1", &old, 1, &err), 0);
    membership_disconnect(members, "node-a", 1, 1, &events);
    holders_are("");
    join("node-a", 2, 1, 2);
    holders_are("node-a/0=");
    ck_assert_int_eq(membership_hold(members, "j-2", &fresh, 1, &err), 0);
    ck_assert_int_eq(membership_hold(members, "j-1", NULL, 0, &err), 0);
    holders_are("node-a/0=j-2");
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

int main(void)
{
    TCase *tcase = tcase_create("membership");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, silent_worker_is_suspect_then_lost);
    tcase_add_test(tcase, a_heartbeat_makes_a_suspect_well);
    tcase_add_test(tcase, a_call_without_a_heartbeat_is_a_sign_of_life);
    tcase_add_test(tcase, a_suspect_that_does_not_follow_lives_and_stays_one);
    tcase_add_test(tcase, a_clock_that_stood_still_loses_through_suspicion);
    tcase_add_test(tcase, a_coordinator_that_was_busy_counts_no_silence);
    tcase_add_test(tcase, a_late_heartbeat_does_not_turn_time_back);
    tcase_add_test(tcase, a_closed_connection_loses_at_once);
    tcase_add_test(tcase, a_connection_that_closed_while_nobody_listened_loses_nobody_who_speaks);
    tcase_add_test(tcase, a_restarted_worker_is_lost_before_it_joins);
    tcase_add_test(tcase, a_lost_instance_never_returns);
    tcase_add_test(tcase, two_hosts_with_one_name_are_told_which_has_it);
    tcase_add_test(tcase, new_figures_are_a_change_and_the_same_are_none);
    tcase_add_test(tcase, a_living_worker_cannot_change_its_devices);
    tcase_add_test(tcase, a_report_without_devices_or_instance_is_refused);
    tcase_add_test(tcase, workers_are_listed_by_name);
    tcase_add_test(tcase, the_dead_are_forgotten_after_a_while);
    tcase_add_test(tcase, a_drain_survives_a_restart_of_the_worker);
    tcase_add_test(tcase, another_reason_for_a_drain_is_told);
    tcase_add_test(tcase, a_restored_worker_is_suspect_until_it_is_heard_of);
    tcase_add_test(tcase, a_lost_instance_does_not_return_to_a_restarted_coordinator_either);
    tcase_add_test(tcase, a_device_is_held_by_one_job);
    tcase_add_test(tcase, what_cannot_be_held_is_named_and_changes_nothing);
    tcase_add_test(tcase, a_lost_worker_offers_nothing_and_a_new_one_is_free);
    tcase_add_test(tcase, a_lease_shorter_than_three_heartbeats_is_refused);
    return suite_run("membership", tcase, NULL);
}
