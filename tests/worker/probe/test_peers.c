/* test_peers.c - links between several devices, measured over NCCL by a thread for each: every
 * thread works on a device of its own, and all end when one of them fails. Devices and NCCL are
 * emulated. */
#include "tests/support/suite.h"
#include "worker/probe/probe.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 3
#define BROKEN 1 /* the one that fails, where one does */

extern uint64_t emulated_limit;
extern int emulated_refusal, emulated_refused_device; /* emulated/nccl.h */

static struct accelerator accelerator;
static struct collectives library;
static struct device device;
static _Thread_local int here = -1; /* the device that the thread is bound to */
static atomic_int bound[DEVICES];
static atomic_int calls; /* of all-reduces, on the broken one */

static int bind_noted(int index, struct error *err)
{
    ck_assert_int_eq(here, -1);
    here = index;
    int rc = device_cuda.accelerator->bind(index, err);
    if (rc == 0)
        bound[index]++;
    return rc;
}

static int stream_open_bound(struct device_stream **out, bool computes, struct error *err)
{
    ck_assert_int_ge(here, 0);
    return device_cuda.accelerator->stream_open(out, computes, err);
}

static void setup(void)
{
    ck_assert_int_eq(setenv("EMULATED_DEVICES", "3", 1), 0);
    emulated_limit = UINT64_C(32) << 20;
    accelerator = *device_cuda.accelerator;
    accelerator.bind = bind_noted;
    accelerator.stream_open = stream_open_bound;
    library = collectives_nccl;
    device = device_cuda;
    device.accelerator = &accelerator;
}

START_TEST(links_are_measured_by_a_thread_for_each_device)
{
    struct hardware_link link;
    struct error err = {""};
    int count = 2 + _i, rc = probe_peers(&device, &library, count, &link, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_double_gt(link.latency_s, 0);
    ck_assert_double_gt(link.seconds_per_byte, 0);
    for (int i = 0; i < DEVICES; i++) /* its own thread, and the one that watches over its fabric */
        ck_assert_int_eq(bound[i], i < count ? 2 : 0);
}
END_TEST

/* All end, and these are the words. */
static void check_fails(int expected, const char *words)
{
    struct hardware_link link;
    struct error err = {""};
    int rc = probe_peers(&device, &library, DEVICES, &link, &err);
    ck_assert_msg(rc == expected && strstr(err.text, words) != NULL, "%d, %s", rc, err.text);
}

START_TEST(a_device_that_is_not_there_is_told)
{
    ck_assert_int_eq(setenv("EMULATED_DEVICES", "2", 1), 0);
    check_fails(-ENODEV, "device 3 of 3: CUDA, taking one of several devices: there is no such");
}
END_TEST

START_TEST(devices_that_are_full_are_told)
{
    emulated_limit = UINT64_C(512) << 10;
    check_fails(-ENOMEM, ": there is room for all-reduces of 128.0 KiB only");
}
END_TEST

static int room_taken(uint64_t bytes, void **out, struct error *err)
{
    return here == BROKEN ? error_set(err, -ENOMEM, "somebody was faster")
                          : device_cuda.accelerator->reserve(bytes, out, err);
}

START_TEST(one_that_has_no_memory_ends_the_others)
{
    accelerator.reserve = room_taken;
    check_fails(-ENOMEM, "device 2 of 3: somebody was faster");
}
END_TEST

static int open_broken(const struct fabric_config *config, struct fabric **out, struct error *err)
{
    return config->rank == 0 ? error_set(err, -EIO, "no way out")
                             : collectives_nccl.open(config, out, err);
}

/* The others wait for what the first has to tell them. */
START_TEST(one_that_cannot_join_ends_the_others)
{
    library.open = open_broken;
    check_fails(-EIO, "device 1 of 3: no way out");
}
END_TEST

static int all_reduce_broken(struct fabric_group *group, enum element element, void *data,
                             size_t count, enum reduction reduction, struct error *err)
{
    if (here == BROKEN && ++calls == 3)
        return error_set(err, -EIO, "the wire is cut");
    return collectives_nccl.all_reduce(group, element, data, count, reduction, err);
}

/* The others are in an exchange that it does not come to. */
START_TEST(one_that_breaks_off_ends_the_others)
{
    library.all_reduce = all_reduce_broken;
    check_fails(-EIO, "device 2 of 3: the wire is cut");
}
END_TEST

static int check_broken(struct fabric *fabric, struct error *err)
{
    return here == BROKEN && ++calls == 3 ? error_set(err, -ECONNRESET, "nothing came through")
                                          : collectives_nccl.check(fabric, err);
}

START_TEST(an_exchange_that_failed_is_not_timed)
{
    library.check = check_broken;
    check_fails(-ECONNRESET, "device 2 of 3: nothing came through");
}
END_TEST

static atomic_bool room_asked; /* behind the refusal */

static int room_short(uint64_t *bytes, struct error *err)
{
    int rc = device_cuda.accelerator->free_bytes(bytes, err);
    *bytes = here == BROKEN ? (uint64_t)1 << 20 : UINT64_C(1) << 30;
    room_asked = emulated_refused_device == BROKEN;
    return rc;
}

/* The watch alone looks at the fabric meanwhile. */
static int finish_refused(struct error *err)
{
    int rc = device_cuda.accelerator->finish(err);
    if (here == BROKEN && ++calls == 3) {
        emulated_refusal = 1; /* ncclUnhandledCudaError */
        __atomic_store_n(&emulated_refused_device, BROKEN, __ATOMIC_SEQ_CST);
        while (!room_asked)
            sched_yield();
    }
    return rc;
}

/* NCCL tells only that the device failed: whether it was full is asked of the device that it is
 * about, by whoever hears of it. */
START_TEST(a_device_without_room_for_the_library_is_told)
{
    setenv("EMULATED_QUIET", "1", 1);
    accelerator.free_bytes = room_short;
    accelerator.finish = finish_refused;
    check_fails(-ENOMEM,
                "device 2 of 3: an exchange in group {0,1,2}: the device has no memory left "
                "for NCCL");
}
END_TEST

SUITE(peers)
{
    TCase *tcase = tcase_create("peers");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_set_timeout(tcase, 30); /* less than it takes to give a peer up */
    tcase_add_loop_test(tcase, links_are_measured_by_a_thread_for_each_device, 0, 2);
    tcase_add_test(tcase, a_device_that_is_not_there_is_told);
    tcase_add_test(tcase, devices_that_are_full_are_told);
    tcase_add_test(tcase, one_that_has_no_memory_ends_the_others);
    tcase_add_test(tcase, one_that_cannot_join_ends_the_others);
    tcase_add_test(tcase, one_that_breaks_off_ends_the_others);
    tcase_add_test(tcase, an_exchange_that_failed_is_not_timed);
    tcase_add_test(tcase, a_device_without_room_for_the_library_is_told);
    return suite_run("peers", tcase, NULL);
}
