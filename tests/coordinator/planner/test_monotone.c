/* test_monotone.c - a better cluster is no worse, and a job with a pin is no faster than one
 * without, where not all plans can be looked at. */
#include "tests/coordinator/planner/clusters.h"
#include "tests/support/suite.h"

#include <math.h>

#define CLUSTERS 24
#define LAYERS 5
#define DEVICES 5
/* A search is no proof: so much longer a step may be, and in all but one of so many cases less. */
#define LONGER_MOST 1.1
#define LONGER 1.01
#define RARELY 15

static void more_memory(struct cluster *cluster)
{
    for (int i = 0; i < cluster->request.device_count; i++)
        cluster->devices[i].memory_bytes += cluster->devices[i].memory_bytes / 4;
}

static void a_faster_network(struct cluster *cluster)
{
    for (int i = 0; i < 3; i++)
        cluster->profiles[i].network.seconds_per_byte /= 1.5;
}

static void faster_hosts(struct cluster *cluster)
{
    for (int i = 0; i < 3; i++)
        cluster->profiles[i].host.seconds_per_byte /= 1.5;
}

static void one_device_more(struct cluster *cluster)
{
    int count = cluster->request.device_count++;
    cluster->devices[count] = cluster->devices[count - 1];
    cluster->devices[count].name = "more";
    cluster->devices[count].host = "more";
}

static void faster_devices(struct cluster *cluster)
{
    for (int i = 0; i < 3; i++)
        cluster->profiles[i].seconds_per_flop /= 1.3;
}

static void (*const changes[])(struct cluster *) = {more_memory, a_faster_network, faster_hosts,
                                                    one_device_more, faster_devices};
#define CHANGES (int)(sizeof changes / sizeof *changes)

/* Of a step; and what the certificate says that no plan is shorter than. */
struct outcome {
    double step_s, least_s;
    int stages, micro_batches;
};

static struct outcome ask(const struct planner_request *request)
{
    struct planner_result result;
    struct outcome outcome = {INFINITY, INFINITY, 0, 0};
    if (planner_run(request, &result, NULL) == 0)
        outcome = (struct outcome){result.best->predicted.step_time_s,
                                   result.best->predicted.lower_bound_s, result.best->stage_count,
                                   result.best->micro_batches};
    candidates_finish(&result);
    return outcome;
}

/* Better is what may not take longer than the other; returns whether it does. */
static int compare(const struct outcome *better, const struct outcome *other, uint64_t seed,
                   const char *what, int index)
{
    if (isinf(other->step_s))
        return 0;
    double ratio = better->step_s / other->step_s;
    ck_assert_msg(better->least_s <= other->step_s * (1 + 1e-9),
                  "cluster %llu, %s %d: a certificate of %.9g s, and a plan takes %.9g s",
                  (unsigned long long)seed, what, index, better->least_s, other->step_s);
    ck_assert_msg(ratio <= LONGER_MOST, "cluster %llu, %s %d: %.4f times as long",
                  (unsigned long long)seed, what, index, ratio);
    return ratio > LONGER;
}

START_TEST(a_better_cluster_is_no_worse)
{
    int longer = 0, count = test_share(CLUSTERS);
    for (int i = 0; i < count; i++) {
        uint64_t seed = test_seed() + 1000 * (uint64_t)i;
        struct cluster cluster;
        cluster_init(&cluster, seed, LAYERS, DEVICES);
        struct outcome before = ask(&cluster.request), after;
        cluster_finish(&cluster);
        cluster_init(&cluster, seed, LAYERS, DEVICES);
        changes[i % CHANGES](&cluster);
        after = ask(&cluster.request);
        longer += compare(&after, &before, seed, "change", i % CHANGES);
        cluster_finish(&cluster);
    }
    ck_assert_msg(longer <= 1 + count / RARELY, "%d of %d are worse", longer, count);
}
END_TEST

START_TEST(a_pin_makes_no_plan_faster)
{
    int longer = 0, count = test_share(CLUSTERS);
    for (int i = 0; i < count; i++) {
        uint64_t seed = test_seed() + 1000 * (uint64_t)i;
        struct cluster cluster;
        cluster_init(&cluster, seed, LAYERS, DEVICES);
        struct outcome free = ask(&cluster.request), pinned;
        struct job_plan *plan = &cluster.job->plan;
        *(i % 2 ? &plan->pin.pp : &plan->pin.micro_batches) =
            (i % 2 ? free.stages : free.micro_batches) == 1 ? 2 : 1;
        pinned = ask(&cluster.request);
        longer += compare(&free, &pinned, seed, "pin", i % 2);
        cluster_finish(&cluster);
    }
    ck_assert_msg(longer <= 1 + count / RARELY, "%d of %d are worse", longer, count);
}
END_TEST

/* A network that is half again as fast, and a plan that takes 6 % longer was found. */
START_TEST(a_faster_network_makes_no_step_longer)
{
    struct cluster cluster;
    cluster_init(&cluster, 1019, 6, 5);
    double before_s = cluster_step(&cluster.request);
    a_faster_network(&cluster);
    ck_assert_double_le(cluster_step(&cluster.request), before_s);
    cluster_finish(&cluster);
}
END_TEST

SUITE(monotone)
{
    TCase *family = tcase_create("family"), *known = tcase_create("known");
    tcase_add_test(family, a_better_cluster_is_no_worse);
    tcase_add_test(family, a_pin_makes_no_plan_faster);
    tcase_set_timeout(family, 120);
    tcase_add_test(known, a_faster_network_makes_no_step_longer);
    tcase_set_timeout(known, 30);
    return suite_run("monotone", family, known, NULL);
}
