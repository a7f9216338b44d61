/* test_searches.c - under the formula no search is better than exact, whatever the problem. */
#include "coordinator/planner/evaluate.h"
#include "coordinator/planner/hunt.h"
#include "tests/coordinator/planner/instances.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define INSTANCES 100

/* By the formula; infinity: nothing fits. */
static double exact_seconds(const struct planner_request *request)
{
    struct hunt hunt;
    int devices = (int)request->job->devices.min;
    ck_assert_int_eq(hunt_init(&hunt, request, &hunt_limits_none, NULL), 0);
    double best_s = hunt_run(&hunt, devices, devices, NULL) == 0 ? hunt.best_s : INFINITY;
    hunt_finish(&hunt);
    return best_s;
}

/* Not all of uniform's plans are: the space has prime axes, and one collective over an axis of four
 * takes less latency than two over axes of two; and uniform never recomputes the ends. */
static bool is_in_space(const struct planner_request *request, const struct plan *plan)
{
    for (int i = 0; i < plan->stage_count; i++)
        for (int axis = 0; axis < plan->stages[i].mesh.axes; axis++)
            if (plan->stages[i].mesh.size[axis] > 3)
                return false;
    return (request->job->plan.forbid.recompute >> plan->blocks[0].recompute & 1) == 0;
}

static void check_search(const struct planner_request *request, const struct search *search,
                         double least_s)
{
    struct planner_result result = {0};
    struct costs costs;
    double formula_s, bound_s;
    bool fits;
    ck_assert_int_eq(costs_init(&costs, request, NULL), 0);
    search->run(request, &result, NULL);
    for (size_t i = 0; i < result.count; i++) {
        const struct plan *plan = result.candidates[i].plan;
        ck_assert_int_eq(evaluate_plan(&costs, plan, &formula_s, &bound_s, &fits, NULL), 0);
        if (fits && is_in_space(request, plan))
            ck_assert_msg(formula_s >= least_s * (1 - 1e-9), "%s finds %.9g s, exact %.9g s",
                          search->name, formula_s, least_s);
        if (plan->predicted.formula_s > 0)
            ck_assert_double_eq_tol(plan->predicted.formula_s, formula_s, 1e-9 * formula_s);
    }
    costs_finish(&costs);
    planner_result_finish(&result);
}

START_TEST(no_search_is_better_than_exact)
{
    struct drawn drawn;
    drawn_init(&drawn, test_seed() + 1000 * (uint64_t)_i);
    drawn.job->devices.min = drawn.job->devices.max = drawn.devices;
    double least_s = exact_seconds(&drawn.request);
    for (int i = 0; searches[i]; i++)
        if (strcmp(searches[i]->name, "exhaustive") != 0)
            check_search(&drawn.request, searches[i], least_s);
    drawn_finish(&drawn);
}
END_TEST

int main(void)
{
    TCase *formula = tcase_create("formula");
    tcase_add_loop_test(formula, no_search_is_better_than_exact, 0, test_share(INSTANCES));
    return suite_run("searches", formula, NULL);
}
