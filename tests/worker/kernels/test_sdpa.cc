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
    {32, 1024, 12, 1, 64, 12}, {8, 2048, 16, 1, 128, 16}, {4, 333, 8, 1, 32, 8},
    {8, 1024, 4, 3, 64, 4},   /* three heads of queries share one of keys and values */
    {1, 2048, 4, 1, 128, 16}, /* some of the heads in memory */
    {1, 1024, 1, 3, 64, 4},
};

START_TEST(attention_is_known)
{
    struct error err = {};
    if (!device)
        return;
    struct cudnn_graph forward = sdpa_forward(&shapes[_i]), backward = sdpa_backward(&shapes[_i]);
    int ways = plan_count(&forward, device, &err);
    ck_assert_msg(ways > 0, "forward: %d, %s", ways, err.text);
    ways = plan_count(&backward, device, &err);
    ck_assert_msg(ways > 0, "backward: %d, %s", ways, err.text);
}
END_TEST

/* Fewer samples first, then fewer heads of those that share no keys; always a divisor. */
START_TEST(parts_become_smaller_in_order)
{
    const struct sdpa_shape whole = {6, 128, 4, 3, 8, 4};
    static const int64_t parts[][2] = {{3, 4}, {2, 4}, {1, 4}, {1, 2}, {1, 1}};
    struct sdpa_shape part = whole;
    int64_t bytes = sdpa_backward_bytes(&part);
    for (const int64_t *expected : parts) {
        ck_assert(sdpa_smaller(&whole, &part));
        ck_assert_int_eq(part.batch, expected[0]);
        ck_assert_int_eq(part.key_heads, expected[1]);
        ck_assert_int_eq(part.heads_apart(), 12);
        ck_assert_int_lt(sdpa_backward_bytes(&part), bytes);
        bytes = sdpa_backward_bytes(&part);
    }
    ck_assert(!sdpa_smaller(&whole, &part));
    /* Three heads of 128 x 128 scores, and of two gradients that are summed, in bf16; and of sums.
     */
    ck_assert_int_eq(bytes, 3 * 128 * 128 * 2 + 3 * 128 * 4 + 256 + 2 * 3 * 128 * 8 * 2);
}
END_TEST

/* A width that no tensor can have: what is refused is refused in words. */
START_TEST(what_is_no_attention_is_refused_in_words)
{
    struct error err = {};
    const struct sdpa_shape wrong = {1, 64, 2, 1, -8, 2};
    if (!device)
        return;
    struct cudnn_graph forward = sdpa_forward(&wrong);
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
    tcase_add_test(tcase, parts_become_smaller_in_order);
    tcase_add_test(tcase, what_is_no_attention_is_refused_in_words);
    Suite *suite = suite_create("sdpa");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
