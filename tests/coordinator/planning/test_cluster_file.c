/* test_cluster_file.c - cluster files, right and wrong. */
#include "common/base/memory.h"
#include "coordinator/planning/cluster_file.h"
#include "tests/support/suite.h"

#include "tests/support/printing.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char whole[] =
    "apiVersion: gimbal/v1\n"
    "kind: Cluster\n"
    "nodes:\n"
    "  - name: titan\n"
    "    count: 2\n"
    "    devices: {kind: gpu, model: RTX TITAN, count: 8, memory: 24GiB, flops: 16.3TFLOP/s,\n"
    "              bandwidth: 672GB/s}\n"
    "  - name: old\n"
    "    devices:\n"
    "      - {kind: cpu, memory: 64GiB, flops: 500GFLOP/s, bandwidth: 40GB/s, efficiency: 0.8}\n"
    "      - {kind: gpu, memory: 8GiB, flops: 5TFLOP/s, bandwidth: 200GB/s}\n"
    "    links:\n"
    "      network: {bandwidth: 1Gbit/s, latency: 100us, cards: 2}\n"
    "links:\n"
    "  host: {bandwidth: 12GB/s, latency: 10us}\n"
    "  network: {bandwidth: 100Gbit/s, latency: 20us}\n";

static struct cluster_config *cluster;
static struct error err;

static int parse(const char *text)
{
    cluster_config_destroy(cluster);
    cluster = NULL;
    return cluster_config_parse(text, strlen(text), "c.yaml", &cluster, &err);
}

static void finish(void)
{
    cluster_config_destroy(cluster);
    cluster = NULL;
}

START_TEST(a_file_says_nodes_devices_and_links)
{
    ck_assert_msg(parse(whole) == 0, "%s", err.text);
    ck_assert_uint_eq(cluster->nodes.count, 2);
    const struct cluster_node *titan = cluster_node(cluster, 0), *old = cluster_node(cluster, 1);
    ck_assert_str_eq(titan->name, "titan");
    ck_assert_int_eq(titan->count, 2);
    ck_assert_uint_eq(titan->devices.count, 1);
    const struct cluster_devices *devices = cluster_devices(titan, 0);
    ck_assert_int_eq(devices->kind, CLUSTER_GPU);
    ck_assert_str_eq(devices->model, "RTX TITAN");
    ck_assert_int_eq(devices->count, 8);
    ck_assert_uint_eq(devices->memory, UINT64_C(24) << 30);
    ck_assert_double_eq(devices->flops, 16.3e12);
    ck_assert_double_eq(devices->bandwidth, 672e9);
    ck_assert_double_eq(devices->efficiency, 0.5);
    ck_assert_uint_eq(old->devices.count, 2);
    ck_assert_int_eq(cluster_devices(old, 0)->kind, CLUSTER_CPU);
    ck_assert_double_eq(cluster_devices(old, 0)->efficiency, 0.8);
    ck_assert_int_eq(cluster_devices(old, 1)->count, 1);
}
END_TEST

START_TEST(links_of_a_node_go_over_those_of_the_cluster)
{
    ck_assert_int_eq(parse(whole), 0);
    struct cluster_links links = cluster_node_links(cluster, cluster_node(cluster, 0));
    ck_assert_double_eq(links.network.bandwidth, 12.5e9);
    ck_assert_double_eq_tol(links.network.latency, 20e-6, 1e-18);
    ck_assert_int_eq(links.network.cards, 0);
    links = cluster_node_links(cluster, cluster_node(cluster, 1));
    ck_assert_double_eq(links.network.bandwidth, 125e6);
    ck_assert_double_eq_tol(links.network.latency, 100e-6, 1e-18);
    ck_assert_int_eq(links.network.cards, 2);
    ck_assert_double_eq(links.host.bandwidth, 12e9);
}
END_TEST

START_TEST(what_is_printed_reads_the_same)
{
    ck_assert_int_eq(parse(whole), 0);
    char *first = fields_print(cluster_config_fields, cluster);
    ck_assert_msg(parse(first) == 0, "%s\n%s", err.text, first);
    char *second = fields_print(cluster_config_fields, cluster);
    ck_assert_str_eq(first, second);
    ck_assert_double_eq(cluster_devices(cluster_node(cluster, 0), 0)->flops, 16.3e12);
    ck_assert_double_eq(cluster_node(cluster, 1)->links.network.bandwidth, 125e6);
    free(first);
    free(second);
}
END_TEST

#define HEAD "apiVersion: gimbal/v1\nkind: Cluster\n"
#define GPU "kind: gpu, memory: 8GiB, flops: 5TFLOP/s, bandwidth: 200GB/s"

static const struct {
    const char *text, *place, *words;
} wrong[] = {
    {"apiVersion: gimbal/v1\nnodes: []\n", "c.yaml:1:1: ", "kind: missing: write Cluster"},
    {HEAD "nodes: []\n", "c.yaml:3:8: ", "nodes: names no node: write at least one"},
    {HEAD "nodes: [a, b]\n", "c.yaml:3:9: ", "nodes[0]: is a single value"},
    {HEAD "nodes:\n- {name: a}\n",
     "c.yaml:4:3: ", "nodes[0].devices: missing: write a list of at most 16 sections"},
    {HEAD "nodes:\n- name: a\n  devices: {" GPU ", memroy: 1GiB}\n",
     "c.yaml:5:", "nodes[0].devices.memroy: unknown key; did you mean 'memory'?"},
    {HEAD "nodes:\n- name: a\n  devices: [{" GPU "}, {kind: gpu, flops: 5}]\n",
     "c.yaml:5:", "nodes[0].devices[1].memory: missing"},
    {HEAD "nodes:\n- name: a\n  devices: {kind: gpu, memory: 8GiB, flops: 5, bandwidth: 1GB/s}\n",
     "c.yaml:5:", "nodes[0].devices.flops: '5' is not a speed: write a speed with its unit"},
    {HEAD
     "nodes:\n- name: a\n  devices: {kind: gpu, memory: 8GiB, flops: 5TFLOP/s, bandwidth: 7}\n",
     "c.yaml:5:", "nodes[0].devices.bandwidth: '7' is not a bandwidth"},
    {HEAD "nodes:\n- name: a b\n  devices: {" GPU "}\n",
     "c.yaml:4:9: ", "nodes[0].name: 'a b' cannot be a name"},
    {HEAD "nodes:\n- {name: a, devices: {" GPU "}}\n- {name: a, devices: {" GPU "}}\n"
          "links: {network: {bandwidth: 1GB/s, latency: 1us}}\n",
     "c.yaml:5:10: ", "nodes[1].name: 'a' is the name of a node of nodes[0] too"},
    {HEAD "nodes:\n- {name: a, count: 3, devices: {" GPU "}}\n- {name: a-2, devices: {" GPU "}}\n"
          "links: {network: {bandwidth: 1GB/s, latency: 1us}}\n",
     "c.yaml:5:10: ", "nodes[1].name: 'a-2' is the name of a node of nodes[0] too"},
    {HEAD "nodes:\n- name: a\n  devices: {" GPU ", count: 2}\n",
     "c.yaml:1:1: ", "links.host: missing: node 'a' has several devices"},
    {HEAD "nodes:\n- name: a\n  count: 2\n  devices: {" GPU "}\n",
     "c.yaml:1:1: ", "links.network: missing: there are several nodes"},
    {HEAD "nodes:\n- name: a\n  devices: {" GPU "}\nlinks: {network: {bandwidth: 1GB/s}}\n",
     "c.yaml:6:", "links.network.latency: missing"},
    {HEAD "nodes:\n- name: a\n  count: 65536\n  devices: {" GPU ", count: 2}\n",
     "c.yaml:6:", "nodes[0].devices: with these there are 131072 devices"},
};

START_TEST(what_is_wrong_is_told_with_its_place)
{
    ck_assert_int_eq(parse(wrong[_i].text), -EINVAL);
    ck_assert_msg(strncmp(err.text, wrong[_i].place, strlen(wrong[_i].place)) == 0 &&
                      strstr(err.text, wrong[_i].words),
                  "%s", err.text);
}
END_TEST

START_TEST(names_with_numbers_that_nobody_else_has_are_fine)
{
    ck_assert_int_eq(parse(HEAD "nodes:\n- {name: a, count: 3, devices: {" GPU "}}\n"
                                "- {name: a-3, devices: {" GPU "}}\n"
                                "- {name: a-02, devices: {" GPU "}}\n"
                                "links: {network: {bandwidth: 1GB/s, latency: 1us}}\n"),
                     0);
}
END_TEST

/* Aliases make much of a small file. */
START_TEST(a_list_is_no_longer_than_it_may_be)
{
    char *text = xstrdup(HEAD "nodes:\n- name: a\n  devices:\n  - &one {" GPU "}\n");
    for (int i = 0; i < 16; i++) {
        char *longer = xasprintf("%s  - *one\n", text);
        free(text);
        text = longer;
    }
    ck_assert_int_eq(parse(text), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "nodes[0].devices[16]: one item too many: write at "
                                           "most 16"));
    free(text);
}
END_TEST

SUITE(cluster)
{
    TCase *tcase = tcase_create("cluster");
    tcase_add_checked_fixture(tcase, NULL, finish);
    tcase_add_test(tcase, a_file_says_nodes_devices_and_links);
    tcase_add_test(tcase, links_of_a_node_go_over_those_of_the_cluster);
    tcase_add_test(tcase, what_is_printed_reads_the_same);
    tcase_add_loop_test(tcase, what_is_wrong_is_told_with_its_place, 0,
                        sizeof wrong / sizeof *wrong);
    tcase_add_test(tcase, names_with_numbers_that_nobody_else_has_are_fine);
    tcase_add_test(tcase, a_list_is_no_longer_than_it_may_be);
    return suite_run("cluster", tcase, NULL);
}
