/* test_cluster.c - membership and jobs together, under whatever may happen. */
#include "tests/support/cluster.h"

#include "tests/support/suite.h"

#define WALKS 10 /* of one case */
#define STEPS 400

START_TEST(nothing_is_granted_twice_lost_or_overtaken_whatever_happens)
{
    unsigned done = 0, failed = 0, cancelled = 0;
    uint64_t crashes = 0;
    for (unsigned walk = 0; walk < WALKS; walk++) {
        struct cluster *cluster = cluster_create(test_seed() + (uint64_t)_i * WALKS + walk);
        for (int step = 0; step < STEPS; step++)
            cluster_step(cluster);
        cluster_settle(cluster);
        cluster_ended(cluster, &done, &failed, &cancelled);
        crashes += cluster_crashes(cluster);
        cluster_destroy(cluster);
    }
    /* Walks that never get anywhere would prove nothing. */
    ck_assert_uint_ge(done, WALKS);
    ck_assert_uint_ge(failed, WALKS);
    ck_assert_uint_ge(cancelled, WALKS);
    ck_assert_uint_ge(crashes, WALKS);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("cluster");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, nothing_is_granted_twice_lost_or_overtaken_whatever_happens, 0,
                        test_share(5));
    return suite_run("cluster", tcase, NULL);
}
