/* test_hardware.c - reports: copying, checking, JSON there and back. */
#include "common/hardware/hardware.h"
#include "proto/cluster.pb-c.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/support/printing.h"
#include "tests/support/suite.h"

static struct hardware_report *sample(const char *node)
{
    struct hardware_report *report = hardware_report_create(node, "boot-1", "EPYC \"9554\"", "0-7");
    report->cores = 8;
    report->memory_bytes = 32ull << 30;
    hardware_report_add_cache(report, (struct hardware_cache){3, 32 << 20, 1});
    hardware_report_add_numa(report, (struct hardware_numa){0, 8, 32ull << 30});
    struct hardware_device device = {.kind = HARDWARE_CPU,
                                     .name = "EPYC",
                                     .cpuset = "0-3",
                                     .cores = 4,
                                     .memory_bytes = 16ull << 30,
                                     .flops = 1.5e11};
    hardware_report_add_device(report, &device);
    device.cpuset = "4-7";
    device.bandwidth = 2.5e10;
    hardware_report_add_device(report, &device);
    return report;
}

static char *random_text(uint64_t seed, uint64_t *index)
{
    size_t length = random_below(seed, 0, (*index)++, 20);
    char *text = xcalloc(length + 1, 1);
    for (size_t i = 0; i < length; i++)
        text[i] = (char)(' ' + random_below(seed, 0, (*index)++, '~' - ' ' + 1));
    return text;
}

static struct hardware_report *random_report(uint64_t seed)
{
    uint64_t index = 0;
    char *processor = random_text(seed, &index), *cpuset = random_text(seed, &index);
    struct hardware_report *report = hardware_report_create("n-1", "h", processor, cpuset);
    report->cores = (unsigned)random_below(seed, 0, index++, 512);
    report->oversubscribed = random_below(seed, 0, index++, 2);
    report->measured_unix_ms = random_below(seed, 0, index++, 1ull << 42);
    report->network_cards = (unsigned)random_below(seed, 0, index++, 33);
    hardware_set_text(&report->address, random_below(seed, 8, 0, 2) ? "10.0.0.7" : "");
    hardware_set_text(&report->release, random_below(seed, 9, 0, 2) ? "0.1.0" : "");
    report->memory_bytes = random_bits(seed, 0, index++) >> 1;
    for (uint64_t i = random_below(seed, 0, index++, 20); i; i--)
        hardware_report_add_cache(
            report, (struct hardware_cache){(unsigned)i, random_bits(seed, 1, i) >> 1, 3});
    for (uint64_t i = random_below(seed, 0, index++, 20); i; i--)
        hardware_report_add_numa(
            report, (struct hardware_numa){(unsigned)i, 2, random_bits(seed, 2, i) >> 1});
    for (uint64_t i = 1 + random_below(seed, 0, index++, 20); i; i--) {
        struct hardware_device device = {.kind = random_below(seed, 3, i, 2) ? HARDWARE_GPU
                                                                             : HARDWARE_CPU,
                                         .name = processor,
                                         .cpuset = cpuset,
                                         .cores = 1 + (unsigned)random_below(seed, 4, i, 99),
                                         .memory_bytes = 2 + (random_bits(seed, 5, i) >> 2),
                                         .library_bytes = random_below(seed, 14, i, 2),
                                         .flops = random_uniform(seed, 6, i) * 1e15,
                                         .bandwidth = random_uniform(seed, 7, i) * 1e12,
                                         .id = random_below(seed, 10, i, 2) ? "cuda:GPU-1" : NULL,
                                         .place = random_below(seed, 11, i, 2) ? "1:2.0" : NULL,
                                         .upload = random_uniform(seed, 12, i) * 1e11,
                                         .download = random_uniform(seed, 13, i) * 1e11,
                                         .profile = random_below(seed, 9, i, 2) ? "{}" : NULL};
        hardware_report_add_device(report, &device);
    }
    free(processor);
    free(cpuset);
    return report;
}

START_TEST(a_report_comes_back_from_the_wire_as_it_was)
{
    struct error err = {""};
    struct hardware_report *report = random_report((uint64_t)_i), *back = NULL;
    Gimbal__HardwareReport *message = hardware_report_to_wire(report);
    ck_assert_msg(hardware_report_from_wire(message, &back, &err) == 0, "seed %d: %s", _i,
                  err.text);
    ck_assert(hardware_report_equal(report, back));
    /* What a report may not say, a message may not either. */
    message->devices[0]->kind = GIMBAL__DEVICE__KIND__UNKNOWN;
    ck_assert_int_eq(hardware_report_from_wire(message, &back, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "device 0: kind 0 is neither CPU nor GPU"));
    message->devices[0]->kind = GIMBAL__DEVICE__KIND__CPU;
    message->devices[0]->index = 7;
    ck_assert_int_eq(hardware_report_from_wire(message, &(struct hardware_report *){NULL}, &err),
                     -EINVAL);
    gimbal__hardware_report__free_unpacked(message, NULL);
    hardware_report_destroy(report);
    hardware_report_destroy(back);
}
END_TEST

START_TEST(a_report_comes_back_from_json_as_it_was)
{
    struct error err = {""};
    struct hardware_report *report = random_report((uint64_t)_i), *back = NULL;
    json_t *json = hardware_report_to_json(report);
    char *text = json_dumps(json, 0);
    json_t *read = json_loads(text, 0, NULL);
    ck_assert_msg(hardware_report_from_json(read, &back, &err) == 0, "seed %d: %s", _i, err.text);
    ck_assert_msg(hardware_report_equal(report, back), "seed %d: %s", _i, text);
    json_decref(read);
    free(text);
    json_decref(json);
    hardware_report_destroy(back);
    hardware_report_destroy(report);
}
END_TEST

START_TEST(a_copy_is_equal_and_shares_nothing)
{
    struct hardware_report *report = sample("node-a"), *copy = hardware_report_copy(report);
    ck_assert(hardware_report_equal(report, copy));
    copy->devices[1].name[0] = 'X';
    ck_assert(!hardware_report_equal(report, copy));
    ck_assert_str_eq(report->devices[1].name, "EPYC");
    hardware_report_destroy(report);
    ck_assert_str_eq(copy->node, "node-a");
    hardware_report_destroy(copy);
}
END_TEST

/* Where and by how many cards others reach a worker, and what it runs, are parts of what it is. */
START_TEST(another_address_release_or_card_is_another_report)
{
    struct hardware_report *report = sample("node-a"), *copy = hardware_report_copy(report);
    hardware_set_text(&copy->address, "10.0.0.7");
    ck_assert(!hardware_report_equal(report, copy));
    hardware_set_text(&report->address, "10.0.0.7");
    ck_assert(hardware_report_equal(report, copy));
    hardware_set_text(&copy->address, "10.0.0.8");
    ck_assert(!hardware_report_equal(report, copy));
    hardware_set_text(&copy->address, "10.0.0.7");
    hardware_set_text(&copy->release, "0.2.0");
    ck_assert(!hardware_report_equal(report, copy));
    hardware_set_text(&report->release, "0.2.0");
    copy->network_cards = 2;
    ck_assert(!hardware_report_equal(report, copy));
    hardware_report_destroy(report);
    report = hardware_report_copy(copy);
    ck_assert_uint_eq(report->network_cards, 2);
    hardware_report_destroy(report);
    hardware_report_destroy(copy);
}
END_TEST

START_TEST(a_recorded_cluster_comes_back_in_order)
{
    struct error err = {""};
    struct hardware_report *nodes[] = {sample("node-b"), sample("node-a")}, **back;
    size_t count;
    json_t *json = hardware_reports_to_json(nodes, 2);
    ck_assert_msg(hardware_reports_from_json(json, &back, &count, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(count, 2);
    ck_assert(hardware_report_equal(nodes[0], back[0]));
    ck_assert(hardware_report_equal(nodes[1], back[1]));
    hardware_reports_destroy(back, count);
    json_decref(json);
    hardware_report_destroy(nodes[0]);
    hardware_report_destroy(nodes[1]);
}
END_TEST

START_TEST(two_recorded_nodes_with_one_name_are_refused)
{
    struct error err = {""};
    struct hardware_report *nodes[] = {sample("node-a"), sample("node-a")}, **back;
    size_t count;
    json_t *json = hardware_reports_to_json(nodes, 2);
    ck_assert_int_eq(hardware_reports_from_json(json, &back, &count, &err), -EINVAL);
    ck_assert_str_eq(err.text, "nodes[1]: 'name' is 'node-a', which nodes[0] has too");
    json_decref(json);
    hardware_report_destroy(nodes[0]);
    hardware_report_destroy(nodes[1]);
}
END_TEST

/* What is wrong in a recorded cluster, and the words for it. */
static const struct {
    const char *member, *value, *words;
} wrong[] = {
    {"name", "7", "nodes[0]: 'name' is something else, it must be a text"},
    {"name", "\"-a\"",
     "nodes[0]: a node's name is 1 to 63 letters, digits, '.', '-' or '_', and begins with a "
     "letter or digit"},
    {"oversubscribed", "\"yes\"",
     "nodes[0]: 'oversubscribed' is something else, it must be true or false"},
    {"network_cards", "-1", "nodes[0]: 'network_cards' is -1, it must be 0 to 2147483647"},
    {"cores", "-1", "nodes[0]: 'cores' is -1, it must be 0 to 2147483647"},
    {"memory_bytes", "1.5",
     "nodes[0]: 'memory_bytes' is something else, it must be a whole number"},
    {"numa", "{}", "nodes[0]: 'numa' is something else, it must be a list"},
    {"caches", "[7]", "nodes[0]: caches[0]: 'level' is missing, it must be a whole number"},
    {"devices", "[]", "nodes[0]: node 'node-a' has 0 devices: a worker offers 1 to 1024"},
    {"devices",
     "[{\"kind\": \"tpu\", \"index\": 0, \"name\": \"\", \"cpuset\": \"\", \"cores\": 1,"
     " \"memory_bytes\": 1, \"flops\": 0, \"bandwidth\": 0}]",
     "nodes[0]: devices[0]: 'kind' is 'tpu', it must be 'cpu' or 'gpu'"},
    {"devices",
     "[{\"kind\": \"cpu\", \"index\": 3, \"name\": \"\", \"cpuset\": \"\", \"cores\": 1,"
     " \"memory_bytes\": 1, \"flops\": 0, \"bandwidth\": 0}]",
     "nodes[0]: node 'node-a', device 0: index is 3, its place is 0"},
    {"processor", "\"tab\\t\"",
     "nodes[0]: node 'node-a': processor has a character that is not printable ASCII"},
};

START_TEST(a_wrong_member_is_named)
{
    struct error err = {""};
    struct hardware_report *node = sample("node-a"), **back;
    size_t count;
    json_t *json = hardware_reports_to_json(&node, 1);
    json_object_set_new(json_array_get(json_object_get(json, "nodes"), 0), wrong[_i].member,
                        json_loads(wrong[_i].value, JSON_DECODE_ANY, NULL));
    ck_assert_int_eq(hardware_reports_from_json(json, &back, &count, &err), -EINVAL);
    ck_assert_str_eq(err.text, wrong[_i].words);
    json_decref(json);
    hardware_report_destroy(node);
}
END_TEST

START_TEST(an_infinite_rate_is_refused)
{
    struct error err = {""};
    struct hardware_report *report = sample("node-a");
    report->devices[1].flops = INFINITY;
    ck_assert_int_eq(hardware_report_check(report, &err), -EINVAL);
    ck_assert_str_eq(err.text, "node 'node-a', device 1: flops is inf: write a rate per second, or "
                               "0 while unmeasured");
    hardware_report_destroy(report);
}
END_TEST

START_TEST(cores_in_common_are_counted)
{
    static const struct {
        const char *of, *with;
        double expected;
    } cases[] = {
        {"0", "0", 1},
        {"0", "1", 0},
        {"0-3", "2", 0.25},
        {"2", "0-3", 1},
        {"0-3,8", "3-8", 0.4},
        {"", "0", 0},
        {NULL, "0", 0},
        {"0", NULL, 0},
        {"all", "all", 0},
        {"3-0", "0-3", 0},
        {"0,2,4,6", "0-3", 0.5},
        {"0-1", "0,1", 1},
        {"0-4095", "1024-", 1.0 / 4096},
    };
    ck_assert_double_eq(hardware_overlap(cases[_i].of, cases[_i].with), cases[_i].expected);
}
END_TEST

SUITE(hardware)
{
    TCase *tcase = tcase_create("hardware");
    tcase_add_loop_test(tcase, a_report_comes_back_from_json_as_it_was, 0, 200);
    tcase_add_loop_test(tcase, a_report_comes_back_from_the_wire_as_it_was, 0, 200);
    tcase_add_test(tcase, a_copy_is_equal_and_shares_nothing);
    tcase_add_test(tcase, another_address_release_or_card_is_another_report);
    tcase_add_test(tcase, a_recorded_cluster_comes_back_in_order);
    tcase_add_test(tcase, two_recorded_nodes_with_one_name_are_refused);
    tcase_add_loop_test(tcase, a_wrong_member_is_named, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(tcase, an_infinite_rate_is_refused);
    tcase_add_loop_test(tcase, cores_in_common_are_counted, 0, 13);
    return suite_run("hardware", tcase, NULL);
}
