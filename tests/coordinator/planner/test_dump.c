/* test_dump.c - a program that knows only the written costs, and was written for itself, finds the
 * same optimum as the search, of every point and of all: under the formula. */
#include "coordinator/planner/dump.h"
#include "coordinator/planner/exact/hunt.h"
#include "tests/coordinator/planner/instances.h"
#include "tests/support/suite.h"

#include "common/base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INSTANCES 40
#define UNLIKE_SEED 18183633973273340879u
#define PLANS_MAX 2e4 /* of a point, in all instances taken */

/* Few enough plans for a program that prunes little? */
static bool is_small(struct drawn *drawn)
{
    struct costs costs;
    size_t count;
    double plans = 0;
    ck_assert_int_eq(costs_init(&costs, &drawn->request, NULL), 0);
    struct space_point *points =
        space_points(&drawn->request, drawn->devices, drawn->devices, &count);
    for (size_t i = 0; i < count; i++)
        plans = fmax(plans, space_count(&costs, &points[i]));
    free(points);
    costs_finish(&costs);
    return plans > 0 && plans <= PLANS_MAX;
}

/* all: with every zero and recomputation, which no other instances have. */
static void draw_small(struct drawn *drawn, uint64_t seed, bool all)
{
    for (;; seed++) {
        drawn_init(drawn, seed);
        if (all)
            drawn->job->plan.forbid.zero = drawn->job->plan.forbid.recompute = 0;
        if (is_small(drawn))
            break;
        drawn_finish(drawn);
    }
    drawn->job->devices.min = drawn->job->devices.max = drawn->devices;
}

/* By hunt.c of one point, or of all. */
static double search(const struct planner_request *request, const struct space_point *point)
{
    struct hunt hunt;
    struct frontiers frontiers;
    struct instance instance;
    double best_s = INFINITY;
    ck_assert_int_eq(hunt_init(&hunt, request, &hunt_limits_none, NULL), 0);
    if (!point &&
        hunt_run(&hunt, (int)request->job->devices.min, (int)request->job->devices.max, NULL) == 0)
        best_s = hunt.best_s;
    if (point && instance_init(&instance, &hunt.costs, point, false, INFINITY, NULL) == 0) {
        frontiers_init(&frontiers, &instance);
        plan_destroy(partition_solve(&frontiers));
        best_s = frontiers.upper_s;
        frontiers_finish(&frontiers);
    }
    if (point)
        instance_finish(&instance);
    hunt_finish(&hunt);
    return best_s;
}

static void check_equal(double found_s, double other_s)
{
    if (isinf(other_s))
        ck_assert(isinf(found_s));
    else
        ck_assert_double_eq_tol(found_s, other_s, 1e-9 * other_s);
}

static void check_optimum(uint64_t seed, bool all)
{
    struct drawn drawn;
    struct error err = {0};
    char path[] = "/tmp/gimbal-costs-XXXXXX", line[64];
    size_t count;
    double best_s = INFINITY;
    draw_small(&drawn, seed, all);
    FILE *file = fdopen(mkstemp(path), "w");
    ck_assert_ptr_nonnull(file);
    int rc = planner_dump(&drawn.request, file, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_int_eq(fclose(file), 0);
    char *command = xasprintf("%s %s %s", PYTHON, OPTIMUM, path);
    FILE *answers = popen(command, "r");
    struct space_point *points = space_points(&drawn.request, drawn.devices, drawn.devices, &count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_ptr_nonnull(fgets(line, sizeof line, answers));
        double other_s = strtod(line, NULL);
        best_s = fmin(best_s, other_s);
        check_equal(search(&drawn.request, &points[i]), other_s);
    }
    ck_assert_ptr_null(fgets(line, sizeof line, answers));
    ck_assert_int_eq(pclose(answers), 0);
    check_equal(search(&drawn.request, NULL), best_s);
    unlink(path);
    free(command);
    free(points);
    drawn_finish(&drawn);
}

START_TEST(another_program_finds_the_same_optimum)
{
    check_optimum(test_seed() + 1000 * (uint64_t)_i, _i % 3 == 0);
}
END_TEST

/* Devices of two speeds: the slow ones' recomputation hides the fast ones' reduction. */
START_TEST(recomputation_that_hides_more_is_not_left_out)
{
    check_optimum(UNLIKE_SEED, true);
}
END_TEST

START_TEST(what_no_plan_agrees_with_is_refused)
{
    struct drawn drawn;
    struct error err = {0};
    drawn_init(&drawn, test_seed());
    drawn.job->plan.pin.micro_batches = 7;
    ck_assert_int_eq(planner_dump(&drawn.request, stderr, &err), -EINVAL);
    ck_assert_str_eq(err.text, "no point agrees with plan.pin and plan.forbid");
    drawn_finish(&drawn);
}
END_TEST

SUITE(dump)
{
    TCase *formula = tcase_create("formula");
    tcase_add_loop_test(formula, another_program_finds_the_same_optimum, 0, test_share(INSTANCES));
    tcase_add_test(formula, recomputation_that_hides_more_is_not_left_out);
    tcase_add_test(formula, what_no_plan_agrees_with_is_refused);
    return suite_run("dump", formula, NULL);
}
