/* test_launches.c - what is to be done in few launches of kernels is: on the emulated device, which
 * counts them. */
#include "tests/support/suite.h"
#include "tests/worker/kernels/trial.h"
#include "worker/kernels/kernels.h"

#include <check.h>
#include <stdlib.h>

extern int emulated_launches;

static const struct accelerator *accelerator;
static struct lane *lane;
static float *memory; /* of the device: 1 in all elements */

#define MEMORY 4096

static void setup(void)
{
    static float ones[MEMORY];
    void *there;
    struct error err = {""};
    accelerator = device_cuda.accelerator;
    for (int i = 0; i < MEMORY; i++)
        ones[i] = 1;
    ck_assert_int_eq(accelerator->lane_open(&lane, true, &err), 0);
    ck_assert_int_eq(accelerator->reserve(sizeof ones, &there, &err), 0);
    memory = there;
    accelerator->enter(lane);
    accelerator->upload(memory, ones, sizeof ones);
}

static void teardown(void)
{
    struct error err = {""};
    ck_assert_msg(accelerator->finish(&err) == 0, "%s", err.text);
    accelerator->enter(NULL);
    accelerator->release(memory);
    accelerator->lane_close(lane);
}

/* Launches that the update of so many slices takes; every second one is empty. */
static int launches_of(int slices)
{
    struct update_call calls[256];
    int before = emulated_launches;
    ck_assert_int_le(slices, 256);
    for (int i = 0; i < slices; i++) {
        float *place = memory + 16 + i % 512;
        calls[i] = (struct update_call){.parameter = place,
                                        .gradient = place + 512,
                                        .first = place + 1024,
                                        .second = place + 1536,
                                        .count = (size_t)i % 2,
                                        .rate = 0.1f,
                                        .beta1 = 0.9f,
                                        .beta2 = 0.9f,
                                        .epsilon = 1,
                                        .loss = memory,
                                        .square_sum = memory,
                                        .step = 1};
    }
    device_cuda.update_all(calls, slices);
    return emulated_launches - before;
}

START_TEST(many_slices_are_updated_in_one_launch)
{
    ck_assert_int_eq(launches_of(0), 0);
    ck_assert_int_eq(launches_of(1), 0);
    ck_assert_int_eq(launches_of(2), 1);
    ck_assert_int_eq(launches_of(128), 1);
    ck_assert_int_eq(launches_of(130), 2);
}
END_TEST

/* Launches of a norm, whose rows lie here whole or in pieces, forward and backward. */
static void launches_of_norm(const char *name, char split, int launches[DIRECTIONS])
{
    const struct trial_config config = {.device = &device_cuda,
                                        .operation = operation_find(name),
                                        .sizes = trial_sizes(2, 3, 40, 1, 1, 1, 1),
                                        .split = split,
                                        .wanted = 1};
    struct trial *trial = trial_create(&config);
    int before = emulated_launches;
    trial_forward(trial);
    launches[FORWARD] = emulated_launches - before;
    before = emulated_launches;
    trial_backward(trial);
    launches[BACKWARD] = emulated_launches - before;
    trial_destroy(trial);
}

START_TEST(a_norm_of_whole_rows_takes_one_launch)
{
    int launches[DIRECTIONS];
    launches_of_norm("norm", 0, launches);
    ck_assert_int_eq(launches[FORWARD], 1);
    ck_assert_int_eq(launches[BACKWARD], 1);
    launches_of_norm("rmsnorm", 0, launches);
    ck_assert_int_eq(launches[FORWARD], 1);
    ck_assert_int_eq(launches[BACKWARD], 1);
    launches_of_norm("norm", 'h', launches);
    ck_assert_int_eq(launches[FORWARD] % 3, 0);
    ck_assert_int_gt(launches[FORWARD], 3);
}
END_TEST

int main(void)
{
    TCase *updates = tcase_create("updates"), *norms = tcase_create("norms");
    tcase_add_checked_fixture(updates, setup, teardown);
    tcase_add_test(updates, many_slices_are_updated_in_one_launch);
    tcase_add_test(norms, a_norm_of_whole_rows_takes_one_launch);
    return suite_run("launches", updates, norms, NULL);
}
