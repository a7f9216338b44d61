/* test_simulation.c - hundreds of clusters in virtual time, each from a seed of its own. */
#include "tests/simulation/matrix.h"
#include "tests/simulation/measured.h"
#include "tests/simulation/world.h"

#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SEEDS 10 /* of one case */

static void add(struct tally *sum, const struct tally *one)
{
    sum->done += one->done;
    sum->executors += one->executors;
    sum->failed += one->failed;
    sum->cancelled += one->cancelled;
    sum->crashes += one->crashes;
    sum->cuts += one->cuts;
    sum->workers_killed += one->workers_killed;
    sum->stale += one->stale;
    sum->watched += one->watched;
    sum->stayed += one->stayed;
    sum->inherited += one->inherited;
}

START_TEST(nothing_acknowledged_is_lost_and_all_comes_to_rest_whatever_happens)
{
    struct tally sum = {0}, one;
    for (unsigned i = 0; i < SEEDS; i++) {
        struct world_options options = {.seed = (uint32_t)test_seed() + (uint64_t)_i * SEEDS + i};
        simulate(&options, &one);
        add(&sum, &one);
    }
    /* Clusters in which nothing happens would prove nothing. */
    ck_assert_uint_ge(sum.done, SEEDS);
    ck_assert_uint_ge(sum.executors, 100 * SEEDS);
    ck_assert_uint_ge(sum.failed + sum.cancelled, 1);
    ck_assert_uint_ge(sum.stale, SEEDS);
    ck_assert_uint_ge(sum.watched, 100 * SEEDS);
    ck_assert_uint_ge(sum.stayed, 1);
    ck_assert_uint_ge(sum.inherited, 1);
}
END_TEST

START_TEST(a_seed_replays_exactly)
{
    struct tally first, second;
    struct world_options options = {.seed = (uint32_t)test_seed()};
    simulate(&options, &first);
    simulate(&options, &second);
    ck_assert_mem_eq(&first, &second, sizeof first);
}
END_TEST

/* A seed of every cell of the fault matrix: the first in whose world the fault finds somebody. */
START_TEST(a_job_survives_every_fault_in_every_phase)
{
    struct world_options options = {.seed = (uint32_t)test_seed(),
                                    .cell = true,
                                    .row = (size_t)_i / PHASES,
                                    .column = (unsigned)_i % PHASES};
    struct tally tally = {0};
    for (int i = 0; i < 8 && tally.struck == 0; i++, options.seed++)
        simulate(&options, &tally);
    ck_assert_msg(tally.struck == 1, "%s, %s: nobody was hit", matrix_row_name(options.row),
                  phase_name((enum phase)options.column));
    ck_assert_uint_ge(tally.applied, 1);
}
END_TEST

/* As bench/goodput has it, but with a loss every half minute. */
START_TEST(a_job_keeps_most_of_its_pace_whoever_is_lost)
{
    struct tally usual, during;
    struct measured measured = {
        .nodes = 4, .step_ms = 120, .first_step_ms = 140, .time_ms = 1200000};
    struct world_options options = {.seed = (uint32_t)test_seed(), .measured = &measured};
    for (int what = 0; what < DURATIONS; what++)
        measured.of_ms[what] = what == DURATION_RETURN ? 10000 : 40;
    measured.between_s = INFINITY;
    simulate(&options, &usual);
    measured.between_s = 30;
    simulate(&options, &during);
    ck_assert_uint_eq(usual.struck, 0);
    ck_assert_uint_ge(during.struck, 10);
    ck_assert_uint_ge(during.workers_killed, 5);
    ck_assert_uint_lt(during.reached, usual.reached);
    ck_assert_uint_ge(during.reached, usual.reached * 3 / 4);
}
END_TEST

static int count_cells(void)
{
    int rows = 0;
    while (matrix_row_name((size_t)rows))
        rows++;
    return rows * PHASES;
}

int main(void)
{
    TCase *tcase = tcase_create("simulation");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_seed_replays_exactly);
    tcase_add_test(tcase, a_job_keeps_most_of_its_pace_whoever_is_lost);
    tcase_add_loop_test(tcase, nothing_acknowledged_is_lost_and_all_comes_to_rest_whatever_happens,
                        0, test_share(30));
    tcase_add_loop_test(tcase, a_job_survives_every_fault_in_every_phase, 0, count_cells());
    return suite_run("simulation", tcase, NULL);
}
