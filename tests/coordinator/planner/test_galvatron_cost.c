/* test_galvatron_cost.c - Galvatron's accounting: every recorded plan costs what is recorded, by
 * its formula, by simulation and in MB; pipelines worked out by hand; and plans in both notations.
 */
#include "common/base/memory.h"
#include "tests/coordinator/planner/galvatron_recorded.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXACT 1e-12
#define RECORDED 5e-9 /* that project's fitted lines are not exact to more */

START_TEST(a_recorded_plan_costs_what_is_recorded)
{
    struct recorded recorded = recorded_read(_i);
    struct galvatron_verdict *verdict = xcalloc(1, sizeof *verdict);
    struct error err;
    int rc = galvatron_judge(&recorded.problem, &recorded.plan, verdict, &err);
    ck_assert_msg(rc == 0, "%s: %s", recorded.path, err.text);
    double formula_s = json_number_value(json_object_get(recorded.figures, "iteration_s"));
    double neutral_s = json_number_value(json_object_get(recorded.figures, "neutral_s"));
    const json_t *memory = json_object_get(recorded.figures, "memory_MB");
    ck_assert_msg(formula_s > 0 && neutral_s > 0, "%s", recorded.path);
    ck_assert_double_eq_tol(verdict->formula_s, formula_s, RECORDED * formula_s);
    ck_assert_double_eq_tol(verdict->neutral_s, neutral_s, RECORDED * neutral_s);
    ck_assert_uint_eq(json_array_size(memory), (size_t)verdict->stages);
    for (int i = 0; i < verdict->stages; i++)
        ck_assert_int_eq(verdict->stage[i].mb,
                         json_integer_value(json_array_get(memory, (size_t)i)));
    if (recorded_is_theirs(&recorded)) { /* it was found, so it fits, and lies in their space */
        ck_assert(verdict->fits);
        ck_assert_ptr_null(verdict->notes[0]);
    }
    free(verdict);
    recorded_finish(&recorded);
}
END_TEST

START_TEST(a_pipeline_is_as_worked_out)
{
    /* A = 10 + 2 x 6 = 22, B = 2 + 4 + 2 x 4 = 14; the last reduction ends 3 after. */
    struct galvatron_cost rising[] = {{4, 0, 4.5, 0}, {6, 0, 13, 0}};
    ck_assert_double_eq_tol(galvatron_formula(rising, 2, 3), 25, EXACT * 25);
    /* A = 10 + 2 x 4 = 18, B = 2 + 4 + 2 x 6 = 18; the first reduction ends 1 after. */
    struct galvatron_cost falling[] = {{6, 0, 7, 0}, {4, 0, 4.5, 0}};
    ck_assert_double_eq_tol(galvatron_formula(falling, 2, 3), 19, EXACT * 19);
    /* The middle stage is counted once: A = 40 + 7. Who waits for it is not in the formula. */
    struct galvatron_cost uneven[] = {{1, 0, 1, 0}, {38, 0, 38, 0}, {1, 0, 1, 0}};
    ck_assert_double_eq_tol(galvatron_formula(uneven, 3, 8), 47, EXACT * 47);
    /* Fewer micro-batches than stages: A = 33 + 1, B = 10 + 20 + 0. */
    struct galvatron_cost few[] = {{30, 0, 30, 0}, {1, 0, 1, 0}, {1, 0, 1, 0}, {1, 0, 1, 0}};
    ck_assert_double_eq_tol(galvatron_formula(few, 4, 2), 34, EXACT * 34);
    /* A = 37 + 5 x 1, B = 29/3 + 58/3 + 4 x 8. */
    struct galvatron_cost rest[] = {{8, 0, 8, 0}, {28, 0, 28, 0}, {1, 0, 1, 0}};
    ck_assert_double_eq_tol(galvatron_formula(rest, 3, 6), 61, EXACT * 61);
    /* What ends early saves nothing. */
    struct galvatron_cost early = {4, 0, 3, 0};
    ck_assert_double_eq_tol(galvatron_formula(&early, 1, 1), 4, EXACT * 4);
}
END_TEST

START_TEST(a_simulated_pipeline_is_as_worked_out)
{
    /* Forwards of 2 and 1, backwards of 4 and 2. The first stage: F 0-2, F 2-4, B 5-9, F 9-11,
     * B 11-15, B 15-19, and then its reduction. */
    struct galvatron_cost stages[] = {{6, 7, 0, 0}, {3, 3.5, 0, 0}};
    ck_assert_double_eq_tol(galvatron_neutral(stages, 2, 3), 20, EXACT * 20);
    /* The one in the middle is what all wait for: it is never idle once it has begun. */
    struct galvatron_cost slow[] = {{3, 3, 0, 0}, {9, 9, 0, 0}, {3, 3, 0, 0}};
    ck_assert_double_eq_tol(galvatron_neutral(slow, 3, 4), 1 + 4 * 9 + 2, EXACT * 39);
    ck_assert_double_eq_tol(galvatron_neutral(slow, 1, 4), 12, EXACT * 12);
}
END_TEST

START_TEST(a_fifth_of_large_memories_is_left)
{
    struct galvatron_spec small = {.memory_gb = 20}, large = {.memory_gb = 40},
                          odd = {.memory_gb = 24};
    ck_assert_int_eq(galvatron_reserve_mb(&small), 0);
    ck_assert_int_eq(galvatron_budget_mb(&small), 20480);
    ck_assert_int_eq(galvatron_reserve_mb(&large), 8192);
    ck_assert_int_eq(galvatron_reserve_mb(&odd), 4915);
}
END_TEST

static const char *const written[] = {"1-1-1",      "2-1-8",       "1-8-1-c",     "2-2*-4f-c",
                                      "4-2-2f*-c",  "1-2-4*",      "1-2*-4-c-sp", "16-4-1-sp",
                                      "1-1-65536f", "1-3*-5f-c-sp"};

START_TEST(a_strategy_is_written_as_it_was_read)
{
    struct galvatron_strategy strategy;
    char text[GALVATRON_STRATEGY_SIZE];
    int pp;
    ck_assert_msg(galvatron_strategy_parse(written[_i], 2, &pp, &strategy), "%s", written[_i]);
    ck_assert_str_eq(galvatron_strategy_print(text, &strategy, pp), written[_i]);
    ck_assert_int_eq(strategy.zero, strchr(written[_i], 'f') ? 3 : 2);
}
END_TEST

static const char *const misspelt[] = {"",         "1-2",       "1-2-",  "1-2-4x",
                                       "0-1-1",    "-1-1-1",    "1-1*2", "1-2-4-f",
                                       "1-2-4 -c", "1-99999-1", "a-1-1"};

START_TEST(what_is_no_strategy_is_refused)
{
    struct galvatron_strategy strategy;
    int pp;
    ck_assert_msg(!galvatron_strategy_parse(misspelt[_i], 2, &pp, &strategy), "%s", misspelt[_i]);
}
END_TEST

/* Where all layers name their ranks as ours do, it is the same plan again. */
START_TEST(a_plan_becomes_ours_and_theirs_again)
{
    struct recorded recorded = recorded_read(_i);
    const struct galvatron_spec *spec = &recorded.problem.spec;
    struct galvatron_plan back;
    struct error err;
    struct plan *ours = galvatron_plan_ours(&recorded.plan, spec, true, &err);
    if (ours) {
        int rc = galvatron_plan_theirs(ours, spec, &back, &err);
        ck_assert_msg(rc == 0, "%s: %s", recorded.path, err.text);
        ck_assert_int_eq(back.layers, recorded.plan.layers);
        ck_assert_int_eq(back.point.vtp, recorded.plan.point.vtp);
        /* Over one replica nothing is sharded. */
        if (recorded.plan.point.vtp * back.point.pp < galvatron_devices(spec))
            ck_assert_int_eq(back.point.embed_sdp, recorded.plan.point.embed_sdp);
        ck_assert_int_eq(back.point.chunks, recorded.plan.point.chunks);
        for (int i = 0; i < back.point.pp; i++)
            ck_assert_int_eq(back.division[i], recorded.plan.division[i]);
        for (int l = 0; l < back.layers; l++) {
            char texts[2][GALVATRON_STRATEGY_SIZE];
            galvatron_strategy_print(texts[0], &recorded.plan.strategies[l], back.point.pp);
            galvatron_strategy_print(texts[1], &back.strategies[l], back.point.pp);
            ck_assert_msg(strcmp(texts[0], texts[1]) == 0, "%s, layer %d: %s is now %s",
                          recorded.path, l, texts[0], texts[1]);
        }
        galvatron_plan_finish(&back);
    } else { /* groups of 2 and of 3 at the front of one stage, or ends divided by sequences */
        ck_assert_msg(strstr(err.text, "groups of both") || strstr(err.text, "by sequences") ||
                          strstr(err.text, "equal micro-batches"),
                      "%s: %s", recorded.path, err.text);
    }
    plan_destroy(ours);
    recorded_finish(&recorded);
}
END_TEST

static const struct {
    const char *role;
    int zero;
    enum recompute recompute;
    const char *words;
} foreign[] = {
    {"context", 0, RECOMPUTE_NONE, "stage 0: Galvatron's formula does not know the role context"},
    {"batch", 1, RECOMPUTE_NONE, "stage 0: Galvatron's formula does not know zero 1"},
    {"batch", 0, RECOMPUTE_SELECTIVE,
     "stage 0: Galvatron's formula does not know recomputation of parts of a block"},
};

START_TEST(what_their_formula_does_not_know_is_refused)
{
    struct error err = {0};
    struct galvatron_spec spec = galvatron_spec_default();
    struct galvatron_plan theirs;
    struct plan *plan = plan_create(1, 4);
    plan->schedule = schedule_find("1f1b");
    plan->micro_batch_samples = 4;
    plan->stages[0].block_count = 4;
    plan->stages[0].mesh = (struct mesh){.axes = 1, .size = {2}};
    for (int b = 0; b < 4; b++)
        plan->blocks[b].roles[0] = role_find("batch");
    plan->blocks[1].roles[0] = role_find(foreign[_i].role);
    plan->blocks[1].zero = foreign[_i].zero;
    plan->blocks[1].recompute = foreign[_i].recompute;
    ck_assert_int_eq(galvatron_plan_theirs(plan, &spec, &theirs, &err), -ENOTSUP);
    ck_assert_str_eq(err.text, foreign[_i].words);
    plan->blocks[1] = plan->blocks[2];
    ck_assert_int_eq(galvatron_plan_theirs(plan, &spec, &theirs, &err), 0);
    galvatron_plan_finish(&theirs);
    plan_destroy(plan);
}
END_TEST

static char *write_temporary(const char *text)
{
    char *path = xstrdup("/tmp/gimbal-galvatron-XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    return path;
}

static int read_plan(const char *text, struct galvatron_plan *out, struct error *err)
{
    struct galvatron_spec spec = galvatron_spec_default();
    spec.nodes = 1;
    spec.gpus_per_node = 8;
    char *path = write_temporary(text);
    int rc = galvatron_plan_read(path, &spec, out, err);
    ck_assert_msg(rc == 0 || strstr(err->text, path), "no file is named: %s", err->text);
    unlink(path);
    free(path);
    return rc;
}

/* As their search saves it, and as its results are written: twice the same plan. */
START_TEST(their_own_form_is_read)
{
    struct galvatron_plan saved, listed;
    struct error err = {0};
    ck_assert_int_eq(read_plan("{\"pp_deg\": 2, \"tp_sizes_enc\": \"2,1,4\", "
                               "\"tp_consecutive_flags\": \"0,1,1\", \"dp_types_enc\": \"1,0,0\", "
                               "\"use_sp\": \"0,0,1\", \"checkpoint\": \"0,1,0\", "
                               "\"global_bsz\": 16, \"chunks\": 4, \"pp_division\": \"1,2\", "
                               "\"pipeline_type\": \"pipedream_flush\", "
                               "\"default_dp_type\": \"zero2\", \"vtp\": 2, \"vsp\": 0, "
                               "\"embed_sdp\": 1}",
                               &saved, &err),
                     0);
    ck_assert_int_eq(read_plan("{\"plan\": {\"pp_deg\": 2, \"pp_division\": [1, 2], "
                               "\"strategies\": [\"2-2-2f*\", \"2-1-4-c\", \"2-4-1-sp\"], "
                               "\"global_bsz\": 16, \"chunks\": 4, \"vtp\": 2, \"embed_sdp\": 1}}",
                               &listed, &err),
                     0);
    json_t *one = galvatron_plan_encode(&saved), *other = galvatron_plan_encode(&listed);
    ck_assert(json_equal(one, other));
    json_decref(other);
    json_decref(one);
    galvatron_plan_finish(&listed);
    galvatron_plan_finish(&saved);
}
END_TEST

#define PLAN(REST) "{\"pp_deg\": 2, \"global_bsz\": 16, \"chunks\": 4, " REST "}"

static const struct {
    const char *text, *words;
} bad_plans[] = {
    {"[]", "is no JSON object"},
    {"{}", "pp_deg is missing: write a whole number from 1 on"},
    {"{\"pp_deg\": 3}", "pp_deg is 3, which does not divide 8 devices"},
    {PLAN("\"pp_division\": [1, 2, 3]"), "pp_division has 3 stages, and pp_deg is 2"},
    {PLAN("\"pp_division\": \"1,x\""), "pp_division is '1,x': write whole numbers from 1 on"},
    {PLAN("\"pp_division\": [1, 1]"), "tp_sizes_enc is missing"},
    {PLAN("\"pp_division\": [1, 1], \"tp_sizes_enc\": [3, 1]"),
     "tp_sizes_enc has 3, which does not divide the 4 devices of a stage"},
    {PLAN("\"pp_division\": [1, 1], \"tp_sizes_enc\": [2, 1], \"checkpoint\": [1]"),
     "checkpoint has 1 entries, and tp_sizes_enc 2"},
    {PLAN("\"pp_division\": [1, 1], \"strategies\": []"), "strategies has 0 entries"},
    {PLAN("\"pp_division\": [1, 1], \"strategies\": [\"2-4\", \"2-4-1\"]"),
     "strategies[0] is '2-4': write pp-tp-dp, like \"2-2*-4f-c\""},
    {PLAN("\"pp_division\": [1, 1], \"strategies\": [\"1-4-1\", \"2-4-1\"]"),
     "strategies[0] is '1-4-1', and pp_deg is 2"},
    {PLAN("\"pp_division\": [1, 1], \"strategies\": [\"2-4-1\", \"2-4-1\"], \"min_tp\": 8"),
     "min_tp is 8, and a stage has 4 devices"},
    {PLAN("\"pp_division\": [1, 1], \"strategies\": [\"2-4-1\", \"2-4-1\"], \"vtp\": \"2\""),
     "vtp is no number: write a whole number from 0 on"},
};

START_TEST(what_is_wrong_in_a_plan_is_named)
{
    struct galvatron_plan plan;
    struct error err = {0};
    ck_assert_int_eq(read_plan(bad_plans[_i].text, &plan, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, bad_plans[_i].words), "%s", err.text);
}
END_TEST

static const struct {
    int tp, dp, vtp;
    int64_t batch;
    const char *words;
} unlike[] = {
    {2, 2, 1, 16, "layer 0: 1 x 2 x 2 does not fill 8 devices"},
    {1, 8, 3, 16, "min_tp 1 and vtp 3 have to divide a stage's 8 devices"},
    {1, 8, 1, 4, "4 samples are fewer than the 8 replicas"},
    {8, 1, 1, 16, "stage 0: the profile lacks neighbours' allreduce_size_N_consec_1 with N = 8"},
};

/* For one node of four devices, to which the plan adds four. */
START_TEST(a_plan_that_does_not_describe_the_case_is_told_why)
{
    struct recorded recorded = recorded_read(0);
    struct galvatron_verdict *verdict = xcalloc(1, sizeof *verdict);
    struct error err = {0};
    struct galvatron_plan plan = {.layers = recorded.plan.layers,
                                  .division = {recorded.plan.layers}};
    recorded.problem.spec.nodes = 2;
    recorded.problem.spec.gpus_per_node = 4;
    recorded.problem.profile.allreduce_gb_s[1] = (struct galvatron_table){.count = 0};
    plan.point = (struct galvatron_point){.pp = 1,
                                          .batch = unlike[_i].batch,
                                          .chunks = 1,
                                          .samples = 2,
                                          .min_tp = 1,
                                          .max_tp = 8,
                                          .vtp = unlike[_i].vtp};
    plan.strategies = xcalloc((size_t)plan.layers, sizeof *plan.strategies);
    for (int l = 0; l < plan.layers; l++)
        plan.strategies[l] = (struct galvatron_strategy){
            .tp = unlike[_i].tp, .dp = unlike[_i].dp, .consecutive = true};
    ck_assert_int_eq(galvatron_judge(&recorded.problem, &plan, verdict, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, unlike[_i].words), "%s", err.text);
    galvatron_plan_finish(&plan);
    free(verdict);
    recorded_finish(&recorded);
}
END_TEST

#define COUNT(ARRAY) ((int)(sizeof(ARRAY) / sizeof *(ARRAY)))

SUITE(galvatron_cost)
{
    TCase *formula = tcase_create("formula"), *plans = tcase_create("plans");
    tcase_add_loop_test(formula, a_recorded_plan_costs_what_is_recorded, 0, recorded_count());
    tcase_add_test(formula, a_pipeline_is_as_worked_out);
    tcase_add_test(formula, a_simulated_pipeline_is_as_worked_out);
    tcase_add_test(formula, a_fifth_of_large_memories_is_left);
    tcase_add_loop_test(formula, a_plan_that_does_not_describe_the_case_is_told_why, 0,
                        COUNT(unlike));
    tcase_add_loop_test(plans, a_strategy_is_written_as_it_was_read, 0, COUNT(written));
    tcase_add_loop_test(plans, what_is_no_strategy_is_refused, 0, COUNT(misspelt));
    tcase_add_loop_test(plans, a_plan_becomes_ours_and_theirs_again, 0, recorded_count());
    tcase_add_loop_test(plans, what_their_formula_does_not_know_is_refused, 0, COUNT(foreign));
    tcase_add_test(plans, their_own_form_is_read);
    tcase_add_loop_test(plans, what_is_wrong_in_a_plan_is_named, 0, COUNT(bad_plans));
    if (!getenv("GIMBAL_TEST_GALVATRON"))
        suite_skip("galvatron's own plans", "GIMBAL_TEST_GALVATRON names no folder of them");
    return suite_run("galvatron_cost", formula, plans, NULL);
}
