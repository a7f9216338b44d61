/* test_sdpa.cc - cuDNN takes the graphs of attention for what they are, for a device that a file
 * describes: GIMBAL_TEST_CUDNN_DEVICE names it, as cuDNN wrote it on a machine that has one. That
 * its kernels compute what was meant only a device shows. */
#include "worker/kernels/cuda/sdpa.h"

#include <check.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
#include "common/base/file.h"
}

static char *device; /* NULL: there is no description, or no cuDNN */

static void setup(void)
{
    const char *path = getenv("GIMBAL_TEST_CUDNN_DEVICE");
    struct error err = {};
    if (!path)
        printf("skip cudnn: GIMBAL_TEST_CUDNN_DEVICE names no description of a device\n");
    else if (backend_load(&err) < 0)
        printf("skip cudnn: %s\n", err.text);
    else
        ck_assert_msg(file_read(path, &device, &err) == 0, "%s", err.text);
}

static void teardown(void)
{
    free(device);
}

static const struct sdpa_shape shapes[] = {
    {32, 1024, 12, 12, 64},
    {8, 2048, 16, 16, 128},
    {4, 333, 8, 8, 32},
    {8, 1024, 12, 4, 64}, /* three heads of queries share one of keys and values */
};

START_TEST(attention_is_known)
{
    struct error err = {};
    if (!device)
        return;
    struct backend_graph forward = sdpa_forward(&shapes[_i]), backward = sdpa_backward(&shapes[_i]);
    int ways = plan_count(&forward, device, &err);
    ck_assert_msg(ways > 0, "forward: %d, %s", ways, err.text);
    ways = plan_count(&backward, device, &err);
    ck_assert_msg(ways > 0, "backward: %d, %s", ways, err.text);
}
END_TEST

/* A width that no tensor can have: what is refused is refused in words. */
START_TEST(what_is_no_attention_is_refused_in_words)
{
    struct error err = {};
    const struct sdpa_shape wrong = {1, 64, 2, 2, -8};
    if (!device)
        return;
    struct backend_graph forward = sdpa_forward(&wrong);
    ck_assert_int_lt(plan_count(&forward, device, &err), 0);
    ck_assert_msg(strncmp(err.text, "cuDNN, a tensor: status ", 24) == 0, "%s", err.text);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("sdpa");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, attention_is_known, 0, (int)(sizeof shapes / sizeof *shapes));
    tcase_add_test(tcase, what_is_no_attention_is_refused_in_words);
    Suite *suite = suite_create("sdpa");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
