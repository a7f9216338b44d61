/* test_cluster.c - membership and jobs together, under whatever may happen.
 *
 * GIMBAL_SEED=n begins with another seed and GIMBAL_SEEDS=m takes so many: to replay a failure,
 * and to soak. */
#include "tests/support/cluster.h"

#include <check.h>
#include <stdlib.h>

#define SEEDS 50
#define STEPS 400

static uint64_t first_seed = 1;
static uint64_t seed_count = SEEDS;

START_TEST(nothing_is_granted_twice_lost_or_overtaken_whatever_happens)
{
    unsigned done = 0, failed = 0, cancelled = 0;
    uint64_t crashes = 0;
    for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) {
        struct cluster *cluster = cluster_create(seed);
        for (int step = 0; step < STEPS; step++)
            cluster_step(cluster);
        cluster_settle(cluster);
        cluster_ended(cluster, &done, &failed, &cancelled);
        crashes += cluster_crashes(cluster);
        cluster_destroy(cluster);
    }
    if (seed_count < SEEDS)
        return;
    /* Walks that never get anywhere would prove nothing. */
    ck_assert_uint_ge(done, seed_count);
    ck_assert_uint_gt(failed, seed_count / 2);
    ck_assert_uint_gt(cancelled, seed_count / 2);
    ck_assert_uint_gt(crashes, seed_count);
}
END_TEST

int main(void)
{
    const char *first = getenv("GIMBAL_SEED"), *count = getenv("GIMBAL_SEEDS");
    if (first)
        first_seed = strtoull(first, NULL, 10);
    if (count)
        seed_count = strtoull(count, NULL, 10);
    TCase *tcase = tcase_create("cluster");
    tcase_set_timeout(tcase, 0); /* meson has its own */
    tcase_add_test(tcase, nothing_is_granted_twice_lost_or_overtaken_whatever_happens);
    Suite *suite = suite_create("cluster");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
