/* test_membership.c - workers that come, return, are drained and refused, and hold devices. */
#include "tests/coordinator/membership_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

START_TEST(a_restarted_worker_is_lost_before_it_joins)
{
    join("node-a", 1, 1, 0);
    events_are("joined node-a 1");
    membership_expire(members, 3000, &events);
    events_are("suspected node-a 1: silent for 3.00 s");
    join("node-a", 2, 2, 3100);
    events_are("lost node-a 1: it was restarted; joined node-a 2");
    ck_assert_int_eq(beat("node-a", 1, 200), -EEXIST);
    ck_assert_str_eq(err.text, "worker 'node-a' was replaced by a newer instance of the same name");
    ck_assert_int_eq(report("node-a", "host-1", 1, 1, 0, 200), -EEXIST);
    events_are("");
    ck_assert_uint_eq(membership_count(members), 1);
}
END_TEST

START_TEST(a_second_worker_of_a_living_ones_name_waits)
{
    join("node-a", 1, 1, 0);
    ck_assert_int_eq(beat("node-a", 1, 1000), 0);
    ck_assert_int_eq(report("node-a", "host-1", 2, 1, 0, 1500), -EEXIST);
    ck_assert_str_eq(err.text,
                     "a worker named 'node-a' on this machine is alive: this one waits until that "
                     "one has ended; to have both, start it with another --name");
    ck_assert_int_eq(beat("node-a", 1, 2000), 0);
    events_are("joined node-a 1");
    membership_disconnect(members, "node-a", 1, 2100, &events);
    join("node-a", 2, 1, 2200);
    events_are("lost node-a 1: its connection closed; joined node-a 2");
}
END_TEST

/* Nobody has its place any more: it may come back, as a new instance. */
START_TEST(a_replaced_worker_is_stale_once_the_newer_one_is_dead)
{
    join("node-a", 1, 1, 0);
    membership_expire(members, 3000, &events);
    join("node-a", 2, 1, 3100);
    membership_disconnect(members, "node-a", 2, 3200, &events);
    ck_assert_int_eq(beat("node-a", 1, 3300), -ESTALE);
    ck_assert_int_eq(report("node-a", "host-1", 1, 1, 0, 3300), -ESTALE);
    join("node-a", 3, 1, 3400);
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
    membership_events_finish(&events);
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
    ck_assert_int_eq(membership_drain(members, "node-a", "", &events, &err), 0);
    events_are("");
    ck_assert_str_eq(membership_find(members, "node-a")->drain_reason, "loud fan");
}
END_TEST

/* Begin anew with what is stored of the worker. */
static void restart_with(const char *name, uint64_t now_ms)
{
    struct worker *stored = worker_copy(membership_find(members, name));
    membership_destroy(members);
    members = membership_create(&MEMBERSHIP_CONFIG_DEFAULT);
    membership_events_finish(&events);
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
    state_is("node-a", "LOST");
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

START_TEST(a_device_knows_the_network_cards_of_its_host)
{
    struct hardware_report *made = hardware_report_create("node-a", "host-1", "EPYC", "0-3");
    const struct hardware_device device = {.kind = HARDWARE_GPU,
                                           .name = (char *)"H100",
                                           .cpuset = (char *)"0",
                                           .memory_bytes = 1 << 30};
    struct device_view *views;
    hardware_report_add_device(made, &device);
    made->network_cards = 8;
    ck_assert_int_eq(membership_report(members, 1, made, 0, &events, &err), 0);
    ck_assert_uint_eq(membership_devices(members, &views), 1);
    ck_assert_uint_eq(views[0].network_cards, 8);
    free(views);
    hardware_report_destroy(made);
}
END_TEST

/* Two cores and a device on each, twice. */
static void join_shared(const char *name, uint64_t instance, const char *host)
{
    struct hardware_report *made = hardware_report_create(name, host, "EPYC", "0-1");
    for (int i = 0; i < 2; i++) {
        const struct hardware_device device = {.name = (char *)"EPYC",
                                               .cpuset = (char *)(i ? "1" : "0"),
                                               .cores = 1,
                                               .memory_bytes = 1 << 30};
        hardware_report_add_device(made, &device);
    }
    made->oversubscribed = true;
    int rc = membership_report(members, instance, made, 0, &events, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    hardware_report_destroy(made);
}

START_TEST(a_device_knows_who_computes_on_its_cores)
{
    const struct device_ref held[] = {ref("node-a", 1, 0), ref("node-b", 2, 0)};
    struct device_view *views;
    join_shared("node-a", 1, "host-1");
    join_shared("node-b", 2, "host-1");
    join_shared("node-c", 3, "host-2");
    ck_assert_int_eq(membership_hold(members, "j-1", held, 2, &err), 0);
    static const double expected[] = {0, 0, 0, 0, 0, 0}; /* its own job's rank is no other */
    ck_assert_uint_eq(membership_devices(members, &views), 6);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(views[i].busy, expected[i]);
    free(views);

    static const double apart[] = {1, 0, 1, 0, 0, 0};
    ck_assert_int_eq(membership_hold(members, "j-1", held, 1, &err), 0);
    ck_assert_int_eq(membership_hold(members, "j-2", held + 1, 1, &err), 0);
    membership_devices(members, &views);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(views[i].busy, apart[i]);
    free(views);
}
END_TEST

SUITE(membership)
{
    TCase *tcase = tcase_create("membership");
    tcase_add_checked_fixture(tcase, members_setup, members_teardown);
    tcase_add_test(tcase, a_restarted_worker_is_lost_before_it_joins);
    tcase_add_test(tcase, a_device_knows_who_computes_on_its_cores);
    tcase_add_test(tcase, a_second_worker_of_a_living_ones_name_waits);
    tcase_add_test(tcase, a_replaced_worker_is_stale_once_the_newer_one_is_dead);
    tcase_add_test(tcase, a_lost_instance_never_returns);
    tcase_add_test(tcase, two_hosts_with_one_name_are_told_which_has_it);
    tcase_add_test(tcase, new_figures_are_a_change_and_the_same_are_none);
    tcase_add_test(tcase, a_living_worker_cannot_change_its_devices);
    tcase_add_test(tcase, a_report_without_devices_or_instance_is_refused);
    tcase_add_test(tcase, workers_are_listed_by_name);
    tcase_add_test(tcase, a_drain_survives_a_restart_of_the_worker);
    tcase_add_test(tcase, another_reason_for_a_drain_is_told);
    tcase_add_test(tcase, a_restored_worker_is_suspect_until_it_is_heard_of);
    tcase_add_test(tcase, a_lost_instance_does_not_return_to_a_restarted_coordinator_either);
    tcase_add_test(tcase, a_device_is_held_by_one_job);
    tcase_add_test(tcase, a_device_knows_the_network_cards_of_its_host);
    tcase_add_test(tcase, what_cannot_be_held_is_named_and_changes_nothing);
    tcase_add_test(tcase, a_lost_worker_offers_nothing_and_a_new_one_is_free);
    return suite_run("membership", tcase, NULL);
}
