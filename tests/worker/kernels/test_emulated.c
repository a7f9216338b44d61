/* test_emulated.c - what a device does not forgive, the emulated one does not either. */
#include "tests/support/suite.h"
#include "tests/worker/kernels/apart.h"

#include <signal.h>
#include <stdlib.h>

#define COUNT 1000

static const struct accelerator *accelerator;
static struct device_stream *lane;
static float *there, here[2][COUNT];

static void setup(void)
{
    struct error err = {""};
    void *memory;
    accelerator = device_cuda.accelerator;
    ck_assert_msg(accelerator->stream_open(&lane, true, &err) == 0, "%s", err.text);
    ck_assert_msg(accelerator->reserve(2 * sizeof *here, &memory, &err) == 0, "%s", err.text);
    there = memory;
    accelerator->enter(lane);
}

static void teardown(void)
{
    accelerator->enter(NULL);
    accelerator->stream_close(lane);
    accelerator->release(there);
}

static struct view array(float *data)
{
    return (struct view){data, {.dims = 1, .high = {COUNT}}, ELEMENT_F32};
}

static void add(float *to, float *from)
{
    const struct view destination = array(to), source = array(from);
    struct error err = {""};
    device_cuda.add(&destination, &source);
    ck_assert_msg(accelerator->finish(&err) == 0, "%s", err.text);
}

START_TEST(kernels_have_the_memory_of_the_device)
{
    accelerator->upload(there, here, sizeof here);
    add(there, there + COUNT);
    accelerator->download(here[0], there, sizeof here[0]);
    ck_assert(here[0][COUNT - 1] == 0);
}
END_TEST

START_TEST(a_kernel_may_not_be_given_memory_of_the_host)
{
    add(there, &here[0][1]);
}
END_TEST

START_TEST(the_host_may_not_touch_memory_of_the_device)
{
    add(there, there);
    here[0][0] = *(volatile float *)there;
}
END_TEST

START_TEST(what_was_released_is_not_there)
{
    add(there, there);
    accelerator->release(there);
    add(there, there);
}
END_TEST

START_TEST(a_kernel_may_not_leave_its_reservation)
{
    add(there + COUNT + COUNT / 2, there);
}
END_TEST

SUITE(emulated)
{
    TCase *tcase = tcase_create("emulated");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, kernels_have_the_memory_of_the_device);
    tcase_add_test_raise_signal(tcase, a_kernel_may_not_be_given_memory_of_the_host, SIGABRT);
    tcase_add_test_raise_signal(tcase, the_host_may_not_touch_memory_of_the_device, SIGSEGV);
    tcase_add_test_raise_signal(tcase, what_was_released_is_not_there, SIGSEGV);
    tcase_add_test_raise_signal(tcase, a_kernel_may_not_leave_its_reservation, SIGSEGV);
    return suite_run("emulated", tcase, NULL);
}
