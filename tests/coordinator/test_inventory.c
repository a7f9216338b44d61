/* test_inventory.c - clusters that are only written down, as devices of the planner. */
#include "common/base/memory.h"
#include "common/hardware/hardware.h"
#include "coordinator/planning/fleet.h"
#include "tests/support/suite.h"

#include "tests/support/printing.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char lab[] =
    "apiVersion: gimbal/v1\n"
    "kind: Cluster\n"
    "nodes:\n"
    "  - {name: a, count: 2, devices: {kind: gpu, count: 2, memory: 8GiB, flops: 10TFLOP/s,\n"
    "     bandwidth: 500GB/s, efficiency: 0.8}}\n"
    "  - name: b\n"
    "    devices: [{kind: cpu, count: 8, memory: 2GiB, flops: 1TFLOP/s, bandwidth: 20GB/s},\n"
    "              {kind: gpu, memory: 8GiB, flops: 10TFLOP/s, bandwidth: 500GB/s,\n"
    "               efficiency: 0.8}]\n"
    "    links: {network: {bandwidth: 1Gbit/s, latency: 100us}}\n"
    "links:\n"
    "  host: {bandwidth: 12GB/s, latency: 10us}\n"
    "  network: {bandwidth: 100Gbit/s, latency: 20us}\n";

static struct inventory inventory;
static struct device_view picked[64];
static struct fleet fleet;
static struct error err;

static void parse(const char *text)
{
    ck_assert_msg(inventory_parse(text, strlen(text), "lab", &inventory, &err) == 0, "%s",
                  err.text);
}

static void finish(void)
{
    fleet_finish(&fleet);
    inventory_finish(&inventory);
}

START_TEST(a_cluster_file_becomes_devices)
{
    parse(lab);
    ck_assert_uint_eq(inventory.report_count, 3);
    ck_assert_uint_eq(inventory.view_count, 2 + 2 + 8 + 1);
    size_t count = fleet_pick(inventory.views, inventory.view_count, 1, UINT_MAX, picked);
    ck_assert_uint_eq(count, 5); /* the GPUs */
    ck_assert_int_eq(fleet_open(&fleet, picked, count, PLANNING_BEST, &err), 0);
    static const char *const names[] = {"a-0/0", "a-0/1", "a-1/0", "a-1/1", "b/8"};
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(fleet.devices[i].name, names[i]);
    ck_assert_uint_eq(fleet.devices[0].memory_bytes, UINT64_C(8) << 30);
    ck_assert_str_eq(fleet.devices[0].host, fleet.devices[1].host);
    ck_assert_str_ne(fleet.devices[1].host, fleet.devices[2].host);
}
END_TEST

/* The devices that a plan would take first, as "b/0 b/1 a-0/0 ". */
static char *order_of(const char *nodes)
{
    char *text = xasprintf("apiVersion: gimbal/v1\nkind: Cluster\nnodes: [%s]\n"
                           "links: {host: {bandwidth: 12GB/s, latency: 10us},\n"
                           "        network: {bandwidth: 100Gbit/s, latency: 20us}}\n",
                           nodes);
    char *order = xstrdup("");
    parse(text);
    size_t count = fleet_pick(inventory.views, inventory.view_count, 1, UINT_MAX, picked);
    ck_assert_int_eq(fleet_open(&fleet, picked, count, PLANNING_BEST, &err), 0);
    for (size_t i = 0; i < count; i++) {
        char *longer = xasprintf("%s%s ", order, fleet.devices[i].name);
        free(order);
        order = longer;
    }
    finish();
    free(text);
    return order;
}

#define RATES(memory, flops) "memory: " memory ", flops: " flops ", bandwidth: 500GB/s}"

START_TEST(where_a_node_stands_in_the_file_changes_nothing)
{
    static const char *const nodes[] = {
        "{name: c, devices: {kind: gpu, count: 2, " RATES("8GiB", "10TFLOP/s") "}",
        "{name: a, count: 2, devices: {kind: gpu, " RATES("8GiB", "10TFLOP/s") "}",
        "{name: b, devices: [{kind: gpu, " RATES(
            "4GiB", "10TFLOP/s") ", {kind: gpu, count: 2, " RATES("16GiB", "10.5TFLOP/s") "]}"};
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        char *text =
            xasprintf("%s, %s, %s", nodes[orders[i][0]], nodes[orders[i][1]], nodes[orders[i][2]]);
        char *order = order_of(text);
        ck_assert_str_eq(order, "b/1 b/2 b/0 c/0 c/1 a-0/0 a-1/0 ");
        free(order);
        free(text);
    }
}
END_TEST

START_TEST(speed_is_what_the_file_says)
{
    parse(lab);
    size_t count = fleet_pick(inventory.views, inventory.view_count, 1, UINT_MAX, picked);
    ck_assert_int_eq(fleet_open(&fleet, picked, count, PLANNING_ANALYTIC, &err), 0);
    const struct profile *fast = fleet.devices[0].profile, *far = fleet.devices[4].profile;
    ck_assert_double_eq_tol(fast->seconds_per_flop, 1 / 8e12, 1e-18);
    ck_assert_double_eq_tol(fast->seconds_per_byte, 1 / 400e9, 1e-18);
    ck_assert_double_eq_tol(fast->host.seconds_per_byte, 1 / 12e9, 1e-18);
    ck_assert_double_eq_tol(fast->network.seconds_per_byte, 1 / 12.5e9, 1e-18);
    ck_assert_double_eq_tol(far->network.seconds_per_byte, 8e-9, 1e-18);
    ck_assert_double_eq_tol(far->network.latency_s, 100e-6, 1e-15);
    /* Equally fast devices are known to be alike. */
    for (int i = 1; i < 4; i++)
        ck_assert_ptr_eq(fleet.devices[i].profile, fast);
    ck_assert_ptr_ne(far, fast);
    ck_assert_uint_eq(fleet.profile_count, 2);
}
END_TEST

START_TEST(a_cluster_file_measures_nothing)
{
    parse(lab);
    ck_assert_int_eq(fleet_open(&fleet, inventory.views, 1, PLANNING_MEASURED, &err), -EINVAL);
    ck_assert_str_eq(err.text, "a-0/0 has no measured profile yet");
}
END_TEST

START_TEST(a_job_gets_devices_of_one_kind)
{
    parse(lab);
    ck_assert_uint_eq(fleet_pick(inventory.views, inventory.view_count, 6, UINT_MAX, picked), 8);
    ck_assert_int_eq(picked[0].device->kind, HARDWARE_CPU);
    ck_assert_uint_eq(fleet_pick(inventory.views, inventory.view_count, 1, 3, picked), 3);
    ck_assert_uint_eq(fleet_pick(inventory.views, inventory.view_count, 9, UINT_MAX, picked), 0);
}
END_TEST

START_TEST(a_recorded_cluster_is_one_too)
{
    struct hardware_report *report = hardware_report_create("rec", "boot-1", "EPYC", "0-1");
    report->cores = 2;
    report->memory_bytes = UINT64_C(1) << 30;
    struct hardware_link link = {1e-6, 1e-9};
    struct profile profile = profile_analytic(1e9, 1e9, 1, link, link);
    char *measured = profile_encode(&profile);
    hardware_report_add_device(report, &(struct hardware_device){.name = (char *)"EPYC",
                                                                 .cpuset = (char *)"0-1",
                                                                 .cores = 2,
                                                                 .memory_bytes = 1 << 30,
                                                                 .profile = measured});
    json_t *json = hardware_reports_to_json(&report, 1);
    char *text = json_dumps(json, 0);
    parse(text);
    ck_assert_int_eq(fleet_open(&fleet, inventory.views, 1, PLANNING_MEASURED, &err), 0);
    ck_assert_str_eq(fleet.devices[0].name, "rec/0");
    ck_assert_double_eq_tol(fleet.devices[0].profile->seconds_per_flop, 1e-9, 1e-15);
    free(text);
    json_decref(json);
    free(measured);
    hardware_report_destroy(report);
}
END_TEST

START_TEST(what_is_neither_is_refused_with_its_place)
{
    ck_assert_int_eq(inventory_parse("{\"kind\": \"NodeList\"}", 20, "x.json", &inventory, &err),
                     -EINVAL);
    ck_assert_msg(strncmp(err.text, "x.json: ", 8) == 0, "%s", err.text);
    ck_assert_int_eq(inventory_parse("a: 1\n", 5, "x.yaml", &inventory, &err), -EINVAL);
    ck_assert_msg(strncmp(err.text, "x.yaml:1:1: a: unknown key", 26) == 0, "%s", err.text);
}
END_TEST

SUITE(inventory)
{
    TCase *tcase = tcase_create("inventory");
    tcase_add_checked_fixture(tcase, NULL, finish);
    tcase_add_test(tcase, a_cluster_file_becomes_devices);
    tcase_add_test(tcase, where_a_node_stands_in_the_file_changes_nothing);
    tcase_add_test(tcase, speed_is_what_the_file_says);
    tcase_add_test(tcase, a_cluster_file_measures_nothing);
    tcase_add_test(tcase, a_job_gets_devices_of_one_kind);
    tcase_add_test(tcase, a_recorded_cluster_is_one_too);
    tcase_add_test(tcase, what_is_neither_is_refused_with_its_place);
    return suite_run("inventory", tcase, NULL);
}
