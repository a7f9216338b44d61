/* test_regret.c - the figures of `./dev bench regret`, of predictions whose worth is known. */
#include "bench/regret/plans.h"
#include "bench/regret/score.h"

#include "common/models/model.h"
#include "tests/support/suite.h"

#include <math.h>

#define CLOSE 1e-12

START_TEST(an_error_is_a_share_of_what_was_measured)
{
    ck_assert_double_eq_tol(score_error(&(struct verdict){80, 100}), 0.2, CLOSE);
    ck_assert_double_eq_tol(score_error(&(struct verdict){120, 100}), 0.2, CLOSE);
    ck_assert_double_eq_tol(score_error(&(struct verdict){100, 100}), 0, CLOSE);
}
END_TEST

START_TEST(the_right_order_is_one_and_the_wrong_one_minus_one)
{
    const struct verdict right[] = {{1, 10}, {3, 30}, {2, 20}, {9, 31}};
    const struct verdict wrong[] = {{1, 31}, {3, 20}, {2, 30}, {9, 10}};
    ck_assert_double_eq_tol(score_tau(right, 4), 1, CLOSE);
    ck_assert_double_eq_tol(score_tau(wrong, 4), -1, CLOSE);
}
END_TEST

/* Of six pairs one is the wrong way round. */
START_TEST(every_pair_the_wrong_way_round_costs_two_of_all)
{
    const struct verdict verdicts[] = {{1, 10}, {2, 30}, {3, 20}, {4, 40}};
    ck_assert_double_eq_tol(score_tau(verdicts, 4), 4.0 / 6, CLOSE);
}
END_TEST

/* Five pairs in the right order; of all six, five are unlike in the prediction. */
START_TEST(plans_predicted_to_be_equal_are_neither_right_nor_wrong)
{
    const struct verdict verdicts[] = {{1, 10}, {2, 20}, {2, 30}, {4, 40}};
    ck_assert_double_eq_tol(score_tau(verdicts, 4), 5 / sqrt(5 * 6), CLOSE);
}
END_TEST

START_TEST(where_all_are_equal_nothing_is_known_of_their_order)
{
    const struct verdict verdicts[] = {{1, 10}, {1, 20}, {1, 30}};
    ck_assert_double_eq_tol(score_tau(verdicts, 3), 0, CLOSE);
    ck_assert_double_eq_tol(score_tau(verdicts, 1), 1, CLOSE);
}
END_TEST

START_TEST(regret_is_what_the_chosen_plan_takes_more_than_the_best)
{
    const struct verdict verdicts[] = {{1, 15}, {2, 10}, {3, 12}};
    ck_assert_double_eq_tol(score_regret(verdicts, 3, 0), 0.5, CLOSE);
    ck_assert_double_eq_tol(score_regret(verdicts, 3, 1), 0, CLOSE);
    ck_assert_double_eq_tol(score_regret(verdicts, 3, 2), 0.2, CLOSE);
}
END_TEST

/* As many ranks as there are, never more; no plan twice. */
START_TEST(the_spread_has_plans_of_all_kinds_that_the_model_can_be_divided_by)
{
    const struct job_model config = {
        .family = "gpt", .layers = 4, .hidden = 128, .heads = 4, .seq = 64, .vocab = 256};
    struct graph *graph;
    struct error err;
    ck_assert_msg(model_build(&config, ELEMENT_F32, &graph, &err) == 0, "%s", err.text);
    for (int ranks = 2; ranks <= 4; ranks += 2) {
        struct plan *plans[PLANS_MAX];
        size_t count = plans_make(graph, ranks, 32, plans);
        ck_assert_uint_eq(count, ranks == 2 ? 23 : 14);
        for (size_t i = 0; i < count; i++) {
            ck_assert_int_le(plan_ranks(plans[i]), ranks);
            ck_assert_int_eq(plan_global_batch(plans[i]), 32);
            for (size_t j = 0; j < i; j++)
                ck_assert(!plan_same(plans[i], plans[j]));
        }
        for (size_t i = 0; i < count; i++)
            plan_destroy(plans[i]);
    }
    graph_destroy(graph);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("regret");
    tcase_add_test(tcase, an_error_is_a_share_of_what_was_measured);
    tcase_add_test(tcase, the_right_order_is_one_and_the_wrong_one_minus_one);
    tcase_add_test(tcase, every_pair_the_wrong_way_round_costs_two_of_all);
    tcase_add_test(tcase, plans_predicted_to_be_equal_are_neither_right_nor_wrong);
    tcase_add_test(tcase, where_all_are_equal_nothing_is_known_of_their_order);
    tcase_add_test(tcase, regret_is_what_the_chosen_plan_takes_more_than_the_best);
    tcase_add_test(tcase, the_spread_has_plans_of_all_kinds_that_the_model_can_be_divided_by);
    return suite_run("regret", tcase, NULL);
}
