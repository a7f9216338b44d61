/* test_floors.c - what a block is said to take at least on many devices, compared with all of its
 * strategies there. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "coordinator/planner/exact/run_floor.h"
#include "coordinator/planner/space/space.h"
#include "tests/coordinator/planner/instances.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

#define MACHINES 48
#define CASES 40
#define SITES 12 /* looked at of every case */
#define STRATEGIES_MAX 400
#define ROUNDING (1 + 1e-9)

static int below(uint64_t seed, uint64_t *draws, int bound)
{
    return (int)random_below(seed, 3, (*draws)++, (uint64_t)bound);
}

/* Devices of one kind; hosts have equally many, but for the last one, or now and then any number.
 */
static void draw_machines(const struct drawn *drawn, uint64_t *draws,
                          struct planner_device *machines)
{
    static const char hosts[MACHINES + 1] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV";
    int each = 1 + below(drawn->seed, draws, 12), left = each, host = 0;
    bool any = below(drawn->seed, draws, 4) == 0;
    for (int i = 0; i < MACHINES; i++) {
        machines[i] =
            (struct planner_device){"d", &hosts[host], UINT64_C(1) << 30, &drawn->profiles[0]};
        if (--left > 0)
            continue;
        left = any ? 1 + below(drawn->seed, draws, 12) : each;
        host++;
    }
}

/* A stage of a random point of so many devices, on which the middle block is priced with all of its
 * strategies. */
static void check_site(struct costs *costs, struct run_floors *floors, const struct site *site,
                       int64_t samples)
{
    struct single_device alone;
    size_t count;
    int devices = mesh_count(&site->mesh);
    single_device_init(&alone, costs, samples);
    int block = alone.run_last, place = costs->model.place[block];
    struct strategy *strategies = space_strategies(costs, site, block, samples, &count, NULL);
    struct run_floor floor = run_floor_find(floors, &alone, devices);
    double share = shares_least(floors->splits, place, samples, devices);
    ck_assert(isfinite(floor.both_s) == isfinite(share));
    ck_assert_msg(count == 0 || isfinite(share), "%d devices divide %d samples in %zu ways",
                  devices, (int)samples, count);
    for (size_t i = 0; i < count && i < STRATEGIES_MAX; i++) {
        struct part_cost cost;
        if (costs_block(costs, site, block, &strategies[i], NULL, samples, &cost, NULL) < 0)
            continue;
        ck_assert_double_le(floor.both_s, (cost.forward_s + cost.backward_s) * ROUNDING);
        ck_assert_double_le(floor.back_s, cost.backward_s * ROUNDING);
    }
    free(strategies);
    single_device_finish(&alone);
}

/* A random stage, and how many samples a micro-batch has there. */
static const struct site *draw_site(const struct drawn *drawn, uint64_t *draws, struct costs *costs,
                                    int64_t *samples)
{
    const struct site *sites[MACHINES];
    struct space_point point = {.stages = 1 + below(drawn->seed, draws, 3)};
    point.devices = point.stages * (1 + below(drawn->seed, draws, MACHINES / point.stages));
    point.samples = 1 + below(drawn->seed, draws, 12);
    space_sites(costs, &point, sites);
    *samples = point.samples;
    return sites[below(drawn->seed, draws, point.stages)];
}

static void draw_case(struct drawn *drawn, uint64_t *draws, int number,
                      struct planner_device *machines, struct costs *costs)
{
    drawn_init(drawn, test_seed() + (uint64_t)number);
    draw_machines(drawn, draws, machines);
    drawn->request.devices = machines;
    drawn->request.device_count = MACHINES;
    ck_assert_int_eq(costs_init(costs, &drawn->request, NULL), 0);
}

START_TEST(no_strategy_of_a_block_takes_less)
{
    struct drawn drawn;
    struct planner_device machines[MACHINES];
    struct costs costs;
    struct splits splits;
    uint64_t draws = 0;
    draw_case(&drawn, &draws, _i, machines, &costs);
    costs.narrow = below(drawn.seed, &draws, 4) > 0;
    splits_init(&splits, &costs);
    struct run_floors floors = {.splits = &splits, .messages = true};
    for (int i = 0; i < SITES; i++) {
        int64_t samples;
        const struct site *site = draw_site(&drawn, &draws, &costs, &samples);
        check_site(&costs, &floors, site, samples);
    }
    run_floors_finish(&floors);
    splits_finish(&splits);
    costs_finish(&costs);
    drawn_finish(&drawn);
}
END_TEST

static struct run_floor floor_of(struct costs *costs, const struct single_device *alone,
                                 int devices)
{
    struct splits splits;
    splits_init(&splits, costs);
    struct run_floors floors = {.splits = &splits, .messages = true};
    struct run_floor floor = run_floor_find(&floors, alone, devices);
    run_floors_finish(&floors);
    splits_finish(&splits);
    return floor;
}

/* What a job forbids of them must not take away the ways to divide a block that leave no copies of
 * its weights to shard: beside an axis of samples there are copies. */
START_TEST(floors_are_the_same_however_weights_are_sharded)
{
    static const uint32_t forbidden[] = {1 << 0, 1 << 0 | 1 << 1, 1 << 2 | 1 << 3};
    struct drawn drawn;
    struct planner_device machines[MACHINES];
    struct costs costs;
    uint64_t draws = 0;
    draw_case(&drawn, &draws, _i, machines, &costs);
    costs.narrow = true;
    for (int i = 0; i < SITES; i++) {
        int64_t samples;
        struct single_device alone;
        int devices = mesh_count(&draw_site(&drawn, &draws, &costs, &samples)->mesh);
        single_device_init(&alone, &costs, samples);
        drawn.job->plan.forbid.zero = 0;
        struct run_floor all = floor_of(&costs, &alone, devices);
        for (size_t f = 0; f < sizeof forbidden / sizeof forbidden[0]; f++) {
            drawn.job->plan.forbid.zero = forbidden[f];
            struct run_floor some = floor_of(&costs, &alone, devices);
            ck_assert(some.both_s == all.both_s && some.back_s == all.back_s);
        }
        single_device_finish(&alone);
    }
    costs_finish(&costs);
    drawn_finish(&drawn);
}
END_TEST

SUITE(floors)
{
    TCase *tcase = tcase_create("floors");
    tcase_add_loop_test(tcase, no_strategy_of_a_block_takes_less, 0, test_share(CASES));
    tcase_add_loop_test(tcase, floors_are_the_same_however_weights_are_sharded, 0,
                        test_share(CASES));
    tcase_set_timeout(tcase, 60);
    return suite_run("floors", tcase, NULL);
}
