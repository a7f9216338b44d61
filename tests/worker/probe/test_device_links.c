/* test_device_links.c - what is between hosts is measured with data in the memory of their devices,
 * over the library by which programs exchange it. Devices and NCCL are emulated, ranks are threads.
 */
#include "tests/support/ranks.h"
#include "tests/support/suite.h"
#include "worker/probe/links.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define RANKS 4
#define LITTLE_ROOM (UINT64_C(2) << 20) /* of which links take a quarter */

/* As in links.c. */
#define MOST_OF_HOSTS ((size_t)1 << 20)

static const int leaders[] = {0, 1, 3};
static struct accelerator accelerator;
static struct device device;
static struct collectives library;
static _Thread_local int here;
static atomic_int told[RANKS]; /* by the lower rank of a pair, with its neighbour */
static atomic_size_t most;     /* elements in an exchange */

static void hear(void *data, int rank, int peer, bool in_devices, const struct hardware_link *link)
{
    (void)data;
    ck_assert(in_devices);
    ck_assert((rank == 0 && peer == 1) || (rank == 1 && peer == 3));
    ck_assert(link->latency_s > 0 && isfinite(link->latency_s));
    ck_assert(link->seconds_per_byte > 0 && isfinite(link->seconds_per_byte));
    told[rank]++;
}

static void note(size_t count)
{
    size_t before = most;
    while (count > before && !atomic_compare_exchange_weak(&most, &before, count))
        ;
}

static int all_reduce_nccl(struct fabric_group *group, enum element element, void *data,
                           size_t count, enum reduction reduction, struct error *err)
{
    note(count);
    return collectives_nccl.all_reduce(group, element, data, count, reduction, err);
}

static int all_reduce_staged(struct fabric_group *group, enum element element, void *data,
                             size_t count, enum reduction reduction, struct error *err)
{
    note(count);
    return collectives_hosted.all_reduce(group, element, data, count, reduction, err);
}

static void setup(void)
{
    accelerator = *device_cuda.accelerator;
    device = device_cuda;
    device.accelerator = &accelerator;
    library = collectives_nccl;
    library.all_reduce = all_reduce_nccl;
}

static uint64_t room(void)
{
    uint64_t bytes = 0;
    struct error err;
    ck_assert_int_eq(device_cuda.accelerator->free_bytes(&bytes, &err), 0);
    return bytes;
}

static int measure_by(struct test_rank *rank, struct fabric *fabric, struct error *err)
{
    const struct links links = {.library = &library,
                                .fabric = fabric,
                                .device = &device,
                                .rank = rank->rank,
                                .ranks = leaders,
                                .count = 3,
                                .told_cb = hear};
    here = rank->rank;
    int rc = links_measure(&links, err);
    ck_assert_ptr_null(accelerator.inside());
    pthread_barrier_wait(rank->barrier); /* who has no part in it waits for nobody */
    return rc;
}

static void measure(struct test_rank *rank)
{
    struct error err = {""};
    ck_assert_msg(measure_by(rank, rank->fabric, &err) == 0, "%s", err.text);
}

static void check_told(void)
{
    for (int rank = 0; rank < RANKS; rank++)
        ck_assert_int_eq(told[rank], rank < 2);
}

START_TEST(neighbours_are_measured_over_nccl_and_leave_no_memory_behind)
{
    uint64_t before = room();
    test_ranks_run_on(&accelerator, &library, RANKS, 20, measure, NULL);
    check_told();
    ck_assert_uint_gt(most, 0);
    ck_assert_uint_eq(room(), before);
}
END_TEST

static int room_of_one_little(uint64_t *bytes, struct error *err)
{
    int rc = device_cuda.accelerator->free_bytes(bytes, err);
    if (here == 1)
        *bytes = LITTLE_ROOM;
    return rc;
}

/* Members that send unlike much end the emulated NCCL. */
START_TEST(both_send_as_much_as_the_one_with_less_room_can)
{
    accelerator.free_bytes = room_of_one_little;
    test_ranks_run_on(&accelerator, &library, RANKS, 20, measure, NULL);
    check_told();
    ck_assert_uint_le(most, LITTLE_ROOM / 4 / sizeof(float));
}
END_TEST

static void measure_staged(struct test_rank *rank)
{
    const struct fabric_config config = {.rank = rank->rank,
                                         .count = rank->count,
                                         .accelerator = &accelerator,
                                         .host = &collectives_local,
                                         .host_fabric = rank->fabric};
    struct fabric *fabric;
    struct error err = {""};
    ck_assert_int_eq(collectives_hosted.open(&config, &fabric, &err), 0);
    ck_assert_msg(measure_by(rank, fabric, &err) == 0, "%s", err.text);
    collectives_hosted.close(fabric);
}

START_TEST(neighbours_are_measured_through_the_hosts_memory)
{
    library = collectives_hosted;
    library.all_reduce = all_reduce_staged;
    test_ranks_run(&collectives_local, RANKS, 20, measure_staged, NULL);
    check_told();
    ck_assert_uint_le(most, MOST_OF_HOSTS);
}
END_TEST

static int reserve_nothing(uint64_t bytes, void **out, struct error *err)
{
    (void)bytes, (void)out;
    return error_set(err, -ENOMEM, "somebody was faster");
}

static void measure_in_vain(struct test_rank *rank)
{
    struct error err = {""};
    ck_assert_int_eq(measure_by(rank, rank->fabric, &err), rank->rank == 2 ? 0 : -ENOMEM);
    ck_assert_str_eq(err.text,
                     rank->rank == 2 ? "" : "measure what is between hosts: somebody was faster");
}

static int open_early(const struct fabric_config *config, struct fabric **out, struct error *err)
{
    struct fabric_config real = *config;
    real.accelerator = device_cuda.accelerator; /* which has room for a fabric */
    return collectives_nccl.open(&real, out, err);
}

START_TEST(a_device_without_room_is_told)
{
    accelerator.reserve = reserve_nothing;
    library.open = open_early;
    test_ranks_run_on(&accelerator, &library, RANKS, 20, measure_in_vain, NULL);
}
END_TEST

static int check_broken(struct fabric *fabric, struct error *err)
{
    return here == 0 ? error_set(err, -ECONNRESET, "nothing came through")
                     : collectives_nccl.check(fabric, err);
}

static void measure_broken(struct test_rank *rank)
{
    struct error err = {""};
    if (rank->rank > 1)
        return;
    const struct links links = {.library = &library,
                                .fabric = rank->fabric,
                                .device = &device,
                                .rank = rank->rank,
                                .ranks = leaders,
                                .count = 2,
                                .told_cb = hear};
    here = rank->rank;
    int rc = links_measure(&links, &err);
    ck_assert_msg(rc == -ECONNRESET, "rank %d: %d, %s", rank->rank, rc, err.text);
}

START_TEST(what_did_not_come_through_is_no_measurement)
{
    library.check = check_broken;
    test_ranks_run_on(&accelerator, &library, RANKS, 20, measure_broken, NULL);
    ck_assert_int_eq(told[0], 0);
}
END_TEST

SUITE(device_links)
{
    TCase *tcase = tcase_create("device links");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, neighbours_are_measured_over_nccl_and_leave_no_memory_behind);
    tcase_add_test(tcase, both_send_as_much_as_the_one_with_less_room_can);
    tcase_add_test(tcase, neighbours_are_measured_through_the_hosts_memory);
    tcase_add_test(tcase, a_device_without_room_is_told);
    tcase_add_test(tcase, what_did_not_come_through_is_no_measurement);
    return suite_run("device links", tcase, NULL);
}
