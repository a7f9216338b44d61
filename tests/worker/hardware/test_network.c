/* test_network.c - network cards of machines whose sysfs is made up. */
#include "worker/hardware/network.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN "10.0.0.1"

static char root[32];
static struct ifaddrs addresses[8];
static struct sockaddr_in6 values[8]; /* or of IPv4, which is smaller */
static size_t address_count;

/* Make the folders on the way to a path under root, which is yours. */
static char *make_way(const char *place, const char *name)
{
    char *path = xasprintf("%s/%s/%s", root, place, name);
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        ck_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    return path;
}

static void put(const char *place, const char *name, const char *text)
{
    char *path = make_way(place, name);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    free(path);
}

static void point(const char *place, const char *name, const char *function)
{
    char *path = make_way(place, name), *target = xasprintf("%s/devices/%s", root, function);
    free(make_way(target + strlen(root) + 1, ""));
    ck_assert_int_eq(symlink(target, path), 0);
    free(target);
    free(path);
}

/* An interface of a function of the bus, or, if that is NULL, without hardware of its own. */
static void add_interface(const char *name, const char *function, const char *speed)
{
    char *place = xasprintf("class/net/%s", name);
    put(place, "carrier", "1\n");
    put(place, "dev_port", "0\n");
    put(place, "speed", speed);
    if (function)
        point(place, "device", function);
    free(place);
}

static void add_rdma(const char *name, const char *function, const char *layer, const char *rate)
{
    char *place = xasprintf("class/infiniband/%s", name), *port = xasprintf("%s/ports/1", place);
    put(port, "state", "4: ACTIVE\n");
    put(port, "link_layer", layer);
    put(port, "rate", rate);
    point(place, "device", function);
    free(port);
    free(place);
}

static void stack(const char *lower, const char *upper)
{
    char *below = xasprintf("class/net/%s/lower_%s", upper, lower),
         *above = xasprintf("class/net/%s/upper_%s", lower, upper);
    free(make_way(below, ""));
    free(make_way(above, ""));
    free(above);
    free(below);
}

static void address(const char *name, const char *text)
{
    struct ifaddrs *at = &addresses[address_count];
    struct sockaddr_in *value = (struct sockaddr_in *)(void *)&values[address_count];
    struct sockaddr_in6 *value6 = &values[address_count];
    *at = (struct ifaddrs){.ifa_name = (char *)name, .ifa_addr = (struct sockaddr *)(void *)value};
    if (inet_pton(AF_INET, text, &value->sin_addr) == 1)
        value->sin_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &value6->sin6_addr) == 1)
        value6->sin6_family = AF_INET6;
    if (address_count > 0)
        addresses[address_count - 1].ifa_next = at;
    address_count++;
}

static unsigned count_at(const char *own)
{
    return network_cards(root, addresses, own);
}

static void setup(void)
{
    snprintf(root, sizeof root, "/tmp/gimbal-cards-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    memset(addresses, 0, sizeof addresses);
    memset(values, 0, sizeof values);
    address_count = 0;
    add_interface("lo", NULL, "");
    address("lo", "127.0.0.1");
    address("lo", "::1");
}

static void teardown(void)
{
    char *command = xasprintf("rm -rf --one-file-system '%s'", root);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

START_TEST(ranks_on_sockets_meet_at_one_card)
{
    add_interface("eth0", "pci/3.0", "10000\n");
    add_interface("eth1", "pci/4.0", "10000\n");
    address("eth0", OWN);
    address("eth1", "10.1.0.1");
    ck_assert_uint_eq(count_at(OWN), 1);
    ck_assert_uint_eq(count_at("10.2.0.1"), 0);
    ck_assert_uint_eq(count_at("127.0.0.1"), 0);
}
END_TEST

/* A bond's address is reached by both cards, even by a VLAN on it; a link that is down is none. */
START_TEST(bonded_cards_are_as_many_as_are_up)
{
    add_interface("eth0", "pci/3.0", "25000\n");
    add_interface("eth1", "pci/3.1", "25000\n");
    add_interface("eth2", "pci/4.0", "25000\n");
    add_interface("bond0", NULL, "50000\n");
    add_interface("bond0.7", NULL, "50000\n");
    stack("eth0", "bond0");
    stack("eth1", "bond0");
    stack("eth2", "bond0");
    stack("bond0", "bond0.7");
    put("class/net/eth2", "carrier", "0\n");
    address("bond0.7", "fd00::7");
    ck_assert_uint_eq(count_at("fd00::7"), 2);
}
END_TEST

/* In a container only its end of a pair is seen. A hypervisor lends a card and its own interface
 * for the same link. */
START_TEST(what_stands_for_a_card_is_one)
{
    add_interface("veth0", NULL, "10000\n");
    address("veth0", OWN);
    ck_assert_uint_eq(count_at(OWN), 1);
    add_interface("eth1", "vmbus/1", "100000\n");
    add_interface("lent", "pci/5.0", "100000\n");
    stack("lent", "eth1");
    address("eth1", "10.1.0.1");
    ck_assert_uint_eq(count_at("10.1.0.1"), 1);
}
END_TEST

START_TEST(all_cards_that_reach_into_devices_are_used)
{
    add_interface("eth0", "pci/3.0", "1000\n");
    address("eth0", OWN);
    add_rdma("mlx5_0", "pci/4.0", "InfiniBand\n", "400 Gb/sec (4X NDR)\n");
    add_rdma("mlx5_1", "pci/4.1", "InfiniBand\n", "400 Gb/sec (4X NDR)\n");
    add_rdma("mlx5_2", "pci/5.0", "InfiniBand\n", "400 Gb/sec (4X NDR)\n");
    put("class/infiniband/mlx5_2/ports/1", "state", "1: DOWN\n");
    ck_assert_uint_eq(count_at(OWN), 2);
    add_rdma("efa_0", "pci/6.0", "Unspecified\n", "400 Gb/sec (4X NDR)\n");
    ck_assert_uint_eq(count_at(OWN), 3);
    add_rdma("slow", "pci/7.0", "InfiniBand\n", "100 Gb/sec (4X EDR)\n");
    ck_assert_uint_eq(count_at(OWN), 3);
}
END_TEST

START_TEST(ethernet_s_needs_an_address)
{
    add_interface("eth0", "pci/3.0", "100000\n");
    address("eth0", OWN);
    add_interface("eth1", "pci/4.0", "100000\n");
    address("eth1", "fe80::1");
    address("eth1", "169.254.3.4");
    add_rdma("mlx5_0", "pci/3.0", "Ethernet\n", "100 Gb/sec (4X EDR)\n");
    add_rdma("mlx5_1", "pci/4.0", "Ethernet\n", "100 Gb/sec (4X EDR)\n");
    put("devices/pci/3.0/net/eth0", "carrier", "1\n");
    put("devices/pci/4.0/net/eth1", "carrier", "1\n");
    ck_assert_uint_eq(count_at(OWN), 1);
    address("eth1", "fd00::4");
    ck_assert_uint_eq(count_at(OWN), 2);
}
END_TEST

START_TEST(virtual_functions_share_their_card)
{
    add_rdma("mlx5_0", "pci/4.0", "InfiniBand\n", "200 Gb/sec (4X HDR)\n");
    add_rdma("mlx5_1", "pci/4.1", "InfiniBand\n", "200 Gb/sec (4X HDR)\n");
    add_rdma("mlx5_2", "pci/4.2", "InfiniBand\n", "200 Gb/sec (4X HDR)\n");
    point("devices/pci/4.1", "physfn", "pci/4.0");
    point("devices/pci/4.2", "physfn", "pci/4.0");
    ck_assert_uint_eq(count_at(OWN), 1);
}
END_TEST

START_TEST(this_machine_s_are_counted)
{
    struct error err = {""};
    unsigned count = 99;
    ck_assert_msg(network_cards_here("192.0.2.9", &count, &err) == 0, "%s", err.text);
    ck_assert_uint_lt(count, 99);
}
END_TEST

SUITE(network_cards)
{
    TCase *tcase = tcase_create("cards");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, ranks_on_sockets_meet_at_one_card);
    tcase_add_test(tcase, bonded_cards_are_as_many_as_are_up);
    tcase_add_test(tcase, what_stands_for_a_card_is_one);
    tcase_add_test(tcase, all_cards_that_reach_into_devices_are_used);
    tcase_add_test(tcase, ethernet_s_needs_an_address);
    tcase_add_test(tcase, virtual_functions_share_their_card);
    tcase_add_test(tcase, this_machine_s_are_counted);
    return suite_run("network cards", tcase, NULL);
}
