/* test_links.c - what is between hosts is measured by one rank of each, two at a time. */
#include "worker/probe/links.h"

#include "tests/support/ranks.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

#define HOSTS_MAX 5

/* Of every pair of ranks, how often it was told of. */
struct told {
    const int *leaders;
    int count;
    int times[8][8];
};

static void hear(void *data, int rank, int peer, bool in_devices, const struct hardware_link *link)
{
    struct told *told = data;
    ck_assert(!in_devices);
    ck_assert(link->latency_s > 0 && isfinite(link->latency_s));
    ck_assert(link->seconds_per_byte > 0 && isfinite(link->seconds_per_byte));
    told->times[rank][peer]++; /* by one thread */
}

static void measure(struct test_rank *rank)
{
    struct told *told = rank->argument;
    struct error err;
    const struct links links = {.library = rank->library,
                                .fabric = rank->fabric,
                                .rank = rank->rank,
                                .ranks = told->leaders,
                                .count = told->count,
                                .told_cb = hear,
                                .data = told};
    int rc = links_measure(&links, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    pthread_barrier_wait(rank->barrier); /* who has no part in it waits for nobody */
}

/* Of 2 to 5 hosts, some with a rank more. */
START_TEST(neighbours_are_measured_once)
{
    static const int leaders[HOSTS_MAX] = {0, 1, 3, 4, 6};
    struct told told = {.leaders = leaders, .count = _i};
    test_ranks_run(&collectives_local, leaders[_i - 1] + 1, 60, measure, &told);
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < 8; b++) {
            int expected = 0;
            for (int i = 0; i + 1 < _i; i++)
                expected += a == leaders[i] && b == leaders[i + 1];
            ck_assert_int_eq(told.times[a][b], expected);
        }
}
END_TEST

SUITE(host_links)
{
    TCase *tcase = tcase_create("links");
    tcase_add_loop_test(tcase, neighbours_are_measured_once, 1, HOSTS_MAX + 1);
    tcase_set_timeout(tcase, 60);
    return suite_run("host links", tcase, NULL);
}
