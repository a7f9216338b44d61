/* test_hardware.c - reports of machines that hwloc makes up, and of the one that runs the test. */
#include "worker/hardware/hardware.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "worker/hardware/cgroup.h"
#include "worker/hardware/cores.h"

/* Two memory nodes of 8 GB, 4 cores each, 2 threads a core: core k is units 2k and 2k+1. */
static const char two_nodes[] = "numa:2(memory=8000000000) l3:1(size=32000000) core:4 pu:2";
static const char three_nodes[] = "numa:3(memory=3000000000) core:2 pu:1";

static hwloc_topology_t synthetic(const char *description)
{
    hwloc_topology_t topology;
    ck_assert_int_eq(hwloc_topology_init(&topology), 0);
    ck_assert_int_eq(hwloc_topology_set_synthetic(topology, description), 0);
    ck_assert_int_eq(hwloc_topology_load(topology), 0);
    return topology;
}

static struct hardware_report *detect(const char *description, struct hardware_options options)
{
    struct error err = {""};
    struct hardware_report *report = NULL;
    hwloc_topology_t topology = synthetic(description);
    options.node = "n";
    options.host = "h";
    ck_assert_msg(hardware_detect(topology, &options, &report, &err) == 0, "%s", err.text);
    hwloc_topology_destroy(topology);
    return report;
}

static void refused(struct hardware_options options, const char *words)
{
    struct error err = {""};
    struct hardware_report *report = NULL;
    hwloc_topology_t topology = synthetic(two_nodes);
    options.node = "n";
    options.host = "h";
    ck_assert_int_eq(hardware_detect(topology, &options, &report, &err), -EINVAL);
    ck_assert_str_eq(err.text, words);
    ck_assert_ptr_null(report);
    hwloc_topology_destroy(topology);
}

/* The cpusets of the report's devices, joined by spaces. */
static void devices_are(struct hardware_report *report, const char *expected)
{
    char text[256] = "";
    for (size_t i = 0; i < report->device_count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 report->devices[i].cpuset);
    ck_assert_str_eq(text, expected);
}

START_TEST(one_device_is_the_whole_machine)
{
    struct hardware_report *report = detect(two_nodes, (struct hardware_options){.devices = 1});
    devices_are(report, "0-15");
    ck_assert_uint_eq(report->cores, 8);
    ck_assert_uint_eq(report->devices[0].cores, 8);
    ck_assert_uint_eq(report->memory_bytes, 16000000000);
    ck_assert_uint_eq(report->devices[0].memory_bytes, 16000000000);
    ck_assert_uint_eq(report->numa_count, 2);
    ck_assert_uint_eq(report->numa[1].index, 1);
    ck_assert_uint_eq(report->numa[1].memory_bytes, 8000000000);
    ck_assert_uint_eq(report->cache_count, 1);
    ck_assert_uint_eq(report->caches[0].level, 3);
    ck_assert_uint_eq(report->caches[0].count, 2);
    ck_assert_uint_eq(report->caches[0].size_bytes, 32000000);
    ck_assert(!report->oversubscribed);
    hardware_report_destroy(report);
}
END_TEST

/* Pieces asked for, and the units that each gets. */
static const struct {
    const char *machine;
    unsigned devices;
    const char *cpusets;
} cuts[] = {
    {two_nodes, 2, "0-7 8-15"},
    {two_nodes, 3, "0-3 4-7 8-15"},
    {two_nodes, 4, "0-3 4-7 8-11 12-15"},
    {two_nodes, 5, "0-1 2-3 4-7 8-11 12-15"},
    {two_nodes, 8, "0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15"},
    {three_nodes, 2, "0-1 2-5"},
    {three_nodes, 3, "0-1 2-3 4-5"},
    {three_nodes, 4, "0 1 2-3 4-5"},
};

START_TEST(a_device_is_consecutive_cores_within_memory_nodes)
{
    struct hardware_report *report =
        detect(cuts[_i].machine, (struct hardware_options){.devices = cuts[_i].devices});
    devices_are(report, cuts[_i].cpusets);
    ck_assert(!report->oversubscribed);
    uint64_t memory = 0;
    unsigned cores = 0;
    for (size_t i = 0; i < report->device_count; i++) {
        memory += report->devices[i].memory_bytes;
        cores += report->devices[i].cores;
    }
    ck_assert_uint_eq(cores, report->cores);
    ck_assert_uint_le(memory, report->memory_bytes);
    ck_assert_uint_ge(memory + report->device_count, report->memory_bytes);
    hardware_report_destroy(report);
}
END_TEST

START_TEST(more_devices_than_cores_share_them_in_turn)
{
    struct hardware_report *report =
        detect("numa:1(memory=6000) core:2 pu:1", (struct hardware_options){.devices = 3});
    devices_are(report, "0 1 0");
    ck_assert(report->oversubscribed);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(report->devices[i].memory_bytes, 2000);
    hardware_report_destroy(report);
}
END_TEST

START_TEST(workers_on_one_host_divide_its_cores_and_memory)
{
    static const char *const expected[] = {"0-3", "4-7", "8-15"};
    uint64_t memory = 0;
    for (unsigned k = 0; k < 3; k++) {
        struct hardware_report *report = detect(
            two_nodes, (struct hardware_options){.share_index = k, .share_count = 3, .devices = 2});
        ck_assert_str_eq(report->cpuset, expected[k]);
        ck_assert(!report->oversubscribed);
        memory += report->memory_bytes;
        hardware_report_destroy(report);
    }
    ck_assert_uint_eq(memory, 16000000000);
}
END_TEST

START_TEST(more_workers_than_cores_say_that_they_share)
{
    struct hardware_report *report =
        detect("numa:1(memory=6000) core:2 pu:1",
               (struct hardware_options){.share_index = 2, .share_count = 3, .devices = 1});
    devices_are(report, "0");
    ck_assert(report->oversubscribed);
    ck_assert_uint_eq(report->memory_bytes, 2000);
    hardware_report_destroy(report);
}
END_TEST

static double crowd(const char *description, struct hardware_options options)
{
    hwloc_topology_t topology = synthetic(description);
    double devices_per_core = hardware_crowd(topology, &options);
    hwloc_topology_destroy(topology);
    return devices_per_core;
}

START_TEST(a_crowd_is_counted_over_all_workers_of_the_host)
{
    ck_assert_double_eq(crowd(two_nodes, (struct hardware_options){.devices = 8}), 1);
    ck_assert_double_eq(crowd(two_nodes, (struct hardware_options){.devices = 16}), 2);
    ck_assert_double_eq(crowd(two_nodes, (struct hardware_options){.devices = 1, .share_count = 4}),
                        1);
    ck_assert_double_eq(crowd(two_nodes, (struct hardware_options){.devices = 4, .share_count = 4}),
                        2);
    ck_assert_double_eq(
        crowd(two_nodes, (struct hardware_options){.devices = 2, .share_count = 16}), 4);
}
END_TEST

START_TEST(a_cpuset_takes_its_part_of_the_memory)
{
    struct hardware_report *report =
        detect(two_nodes, (struct hardware_options){.cpuset = "0-3,8-9", .devices = 2});
    devices_are(report, "0-3 8-9");
    ck_assert_uint_eq(report->cores, 3);
    ck_assert_uint_eq(report->memory_bytes, 6000000000);
    ck_assert_uint_eq(report->devices[0].memory_bytes, 4000000000);
    ck_assert_uint_eq(report->devices[1].memory_bytes, 2000000000);
    hardware_report_destroy(report);
}
END_TEST

START_TEST(half_a_core_is_a_core)
{
    struct hardware_report *report =
        detect(two_nodes, (struct hardware_options){.cpuset = "0,2,4,6", .devices = 2});
    devices_are(report, "0,2 4,6");
    ck_assert_uint_eq(report->cores, 4);
    hardware_report_destroy(report);
}
END_TEST

START_TEST(a_memory_limit_is_divided_like_the_memory)
{
    struct hardware_report *report =
        detect(two_nodes, (struct hardware_options){.devices = 2, .memory_bytes = 4000000000});
    ck_assert_uint_eq(report->memory_bytes, 4000000000);
    ck_assert_uint_eq(report->numa[0].memory_bytes, 2000000000);
    ck_assert_uint_eq(report->devices[1].memory_bytes, 2000000000);
    hardware_report_destroy(report);
}
END_TEST

START_TEST(a_container_has_the_memory_of_its_limit)
{
    struct hardware_report *report = detect(
        two_nodes,
        (struct hardware_options){.share_count = 2, .devices = 2, .limit_bytes = 4000000000});
    ck_assert_uint_eq(report->memory_bytes, 2000000000);
    ck_assert_uint_eq(report->devices[1].memory_bytes, 1000000000);
    hardware_report_destroy(report);
    report = detect(two_nodes, (struct hardware_options){.devices = 1, .limit_bytes = UINT64_MAX});
    ck_assert_uint_eq(report->memory_bytes, 16000000000);
    hardware_report_destroy(report);
}
END_TEST

START_TEST(a_machine_that_shows_no_cores_is_cut_by_its_units)
{
    struct hardware_report *report =
        detect("numa:1(memory=4096) pu:4", (struct hardware_options){.devices = 2});
    devices_are(report, "0-1 2-3");
    hardware_report_destroy(report);
}
END_TEST

START_TEST(options_that_do_not_fit_are_refused_in_words)
{
    refused((struct hardware_options){.devices = 1, .cpuset = "0-99"},
            "cpuset '0-99' is not within '0-15', which this process may use");
    refused((struct hardware_options){.devices = 1, .cpuset = "some"},
            "cpuset 'some' is not a list of cores such as '0-3,8'");
    refused((struct hardware_options){.devices = 1, .share_index = 2, .share_count = 2},
            "share 2 of 2: shares are counted from 0 to 1");
    refused((struct hardware_options){.devices = 1, .memory_bytes = 32000000000},
            "memory: 29.8 GiB is more than the 14.9 GiB that go with these cores, or that their "
            "control group may have");
    refused((struct hardware_options){.devices = 2000},
            "devices: 2000 is too many, cores are cut into at most 64");
}
END_TEST

START_TEST(this_machine_reports_its_cores_and_memory)
{
    struct error err = {""};
    struct hardware_report *report = NULL;
    hwloc_topology_t topology;
    char *host = NULL;
    ck_assert_msg(hardware_topology_open(&topology, &err) == 0, "%s", err.text);
    ck_assert_msg(hardware_host(&host, &err) == 0, "%s", err.text);
    struct hardware_options options = {.node = "here", .host = host, .devices = 1};
    ck_assert_msg(
        cgroup_memory_limit("/sys/fs/cgroup", "/proc/self/cgroup", &options.limit_bytes, &err) == 0,
        "%s", err.text);
    ck_assert_msg(hardware_detect(topology, &options, &report, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(report->cores,
                      cores_count(topology, hwloc_topology_get_allowed_cpuset(topology)));
    ck_assert_uint_ge(report->cores, 1);
    ck_assert_uint_gt(report->memory_bytes, 16 << 20);
    ck_assert_str_eq(report->host, host);
    hardware_report_destroy(report);
    hwloc_topology_destroy(topology);
    free(host);
}
END_TEST

SUITE(hardware_of_a_machine)
{
    TCase *tcase = tcase_create("hardware");
    tcase_add_test(tcase, one_device_is_the_whole_machine);
    tcase_add_loop_test(tcase, a_device_is_consecutive_cores_within_memory_nodes, 0,
                        sizeof cuts / sizeof *cuts);
    tcase_add_test(tcase, more_devices_than_cores_share_them_in_turn);
    tcase_add_test(tcase, workers_on_one_host_divide_its_cores_and_memory);
    tcase_add_test(tcase, more_workers_than_cores_say_that_they_share);
    tcase_add_test(tcase, a_crowd_is_counted_over_all_workers_of_the_host);
    tcase_add_test(tcase, a_cpuset_takes_its_part_of_the_memory);
    tcase_add_test(tcase, half_a_core_is_a_core);
    tcase_add_test(tcase, a_memory_limit_is_divided_like_the_memory);
    tcase_add_test(tcase, a_container_has_the_memory_of_its_limit);
    tcase_add_test(tcase, a_machine_that_shows_no_cores_is_cut_by_its_units);
    tcase_add_test(tcase, options_that_do_not_fit_are_refused_in_words);
    tcase_add_test(tcase, this_machine_reports_its_cores_and_memory);
    return suite_run("supervisor hardware", tcase, NULL);
}
