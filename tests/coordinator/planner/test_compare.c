/* test_compare.c - plans of searches and the best of Galvatron's space: chosen by the
 * same measurements, judged by the same formula. */
#include "common/base/memory.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/compare.h"
#include "coordinator/planner/explain.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 4
#define LAYERS 4
#define MB 1048576.0

static const char job_yaml[] =
    "apiVersion: gimbal/v1\n"
    "name: small\n"
    "model: {family: gpt, layers: 4, hidden: 32, heads: 4, seq: 16, vocab: 64}\n"
    "data: {tokens: [corpus.bin]}\n"
    "train: {steps: 3, global_batch: 8, lr: 0.001}\n"
    "plan: {forbid: {roles: [hidden]}}\n";

static struct galvatron_problem problem;
#define measured problem.profile
static struct profile analytic;
static struct planner_device devices[DEVICES];
static struct job_config *job;
static struct graph *graph;
static struct planner_request request;
static struct galvatron_rows rows;
static struct error err;

static void setup(void)
{
    const struct hardware_link link = {1e-6, 1e-9};
    measured = (struct galvatron_profile){
        .layers = {{.forward_ms = {1, 1}, /* 1 + 1 b milliseconds of b samples */
                    .parameter_mb = 40,
                    .activation_mb = {3, {1, 2, 4}, {10, 6, 4}},
                    .checkpoint_mb = 2}},
        .other_ms = {1, 0},
        .alone = {{3, {1, 2, 4}, {100, 60, 40}}, {3, {1, 2, 4}, {8, 5, 3}}},
        .first = {{3, {1, 2, 4}, {50, 30, 20}}, {3, {1, 2, 4}, {4, 3, 2}}},
        .last = {{3, {1, 2, 4}, {60, 35, 20}}, {3, {1, 2, 4}, {3, 2, 1}}},
        .allreduce_gb_s = {{1, {2}, {50}}, {2, {2, 4}, {100, 8}}},
        .p2p_gb_s = {2, {2, 4}, {20, 10}},
        .overlap = 1.25,
    };
    analytic = profile_analytic(1e9, 1e9, 1, link, link);
    ck_assert_int_eq(job_config_parse(job_yaml, sizeof job_yaml - 1, "job", &job, &err), 0);
    ck_assert_int_eq(planner_graph(job, &graph, &err), 0);
    static const char *const names[] = {"a/0", "a/1", "b/0", "b/1"};
    for (int i = 0; i < DEVICES; i++)
        devices[i] =
            (struct planner_device){names[i], i < 2 ? "a" : "b", (uint64_t)4 << 30, &analytic};
    request = (struct planner_request){
        .graph = graph, .job = job, .devices = devices, .device_count = DEVICES};
    ck_assert_int_eq(galvatron_spec_of(&request, &problem.spec, &err), 0);
    rows = (struct galvatron_rows){0};
}

static void teardown(void)
{
    galvatron_rows_finish(&rows);
    graph_destroy(graph);
    job_config_destroy(job);
}

static void compare(const char *const *names, struct plan *given)
{
    int rc = galvatron_compare(&request, &problem, names, given, NULL, &rows, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
}

/* What instructions of a layer take, with so many samples and nothing beside. */
static struct explained explain_layer(const struct profile *profile, int64_t samples)
{
    struct planner_device device = {"a/0", "a", (uint64_t)4 << 30, profile};
    struct planner_request one = request;
    struct explanation explanation;
    struct plan *plan = plan_create(1, LAYERS + 2);
    plan->stages[0].block_count = LAYERS + 2;
    plan->schedule = schedule_find("1f1b");
    plan->micro_batches = 1;
    plan->micro_batch_samples = samples;
    one.devices = &device;
    one.device_count = 1;
    ck_assert_int_eq(explain_plan(&one, plan, &explanation, &err), 0);
    struct explained layer = explanation.blocks[1];
    explanation_finish(&explanation);
    plan_destroy(plan);
    return layer;
}

START_TEST(a_layer_takes_what_was_measured)
{
    struct profile profile = galvatron_fit(&measured, &request);
    for (int64_t samples = 1; samples <= 8; samples *= 2) {
        struct explained layer = explain_layer(&profile, samples);
        double forward_s = (1 + (double)samples) / 1000;
        ck_assert_double_eq_tol(layer.forward.compute, forward_s, 1e-9);
        /* Adding gradients up is no kernel, and was not measured. */
        ck_assert_double_ge(layer.backward.compute, 2 * forward_s - 1e-9);
        ck_assert_double_le(layer.backward.compute, 2.1 * forward_s);
    }
}
END_TEST

START_TEST(a_line_that_cannot_be_kernels_is_a_time_per_sample)
{
    measured.layers[0].forward_ms = (struct galvatron_line){-0.25, 1.25};
    struct profile profile = galvatron_fit(&measured, &request);
    ck_assert_double_eq_tol(explain_layer(&profile, 4).forward.compute, 0.004, 1e-9);
    measured.layers[0].forward_ms = (struct galvatron_line){3, -0.5};
    profile = galvatron_fit(&measured, &request);
    ck_assert_double_eq_tol(explain_layer(&profile, 2).forward.compute, 0.006, 1e-9);
}
END_TEST

START_TEST(links_are_as_fast_as_was_measured)
{
    struct profile profile = galvatron_fit(&measured, &request);
    ck_assert_double_eq_tol(profile.host.seconds_per_byte, 1 / (100e3 * MB), 1e-20);
    ck_assert_double_eq_tol(profile.network.seconds_per_byte, 1 / (8e3 * MB), 1e-20);
    ck_assert_double_eq(profile.host.latency_s, analytic.host.latency_s);
    ck_assert_double_eq(profile.overlap, 1.25);
    measured.mixed = true;
    measured.allreduce_gb_s[1].count = 1; /* of four none: as the devices' own profile has it */
    profile = galvatron_fit(&measured, &request);
    ck_assert_double_eq_tol(profile.host.seconds_per_byte, 0.5 / (100e3 * MB), 1e-20);
    ck_assert_double_eq(profile.network.seconds_per_byte, analytic.network.seconds_per_byte);
}
END_TEST

START_TEST(every_plan_is_one_that_the_formula_knows)
{
    compare((const char *const[]){"exact", "bmw", "uniform", "neutral", NULL}, NULL);
    ck_assert_uint_eq(rows.count, 5);
    ck_assert_str_eq(rows.items[0].from, "exact");
    ck_assert_str_eq(rows.items[4].from, "galvatron");
    for (size_t i = 0; i < rows.count; i++) {
        const struct galvatron_row *row = &rows.items[i];
        ck_assert_ptr_nonnull(row->plan);
        ck_assert_str_eq(row->plan->schedule->name, "1f1b");
        ck_assert_double_gt(row->plan->predicted.step_time_s, 0);
        ck_assert_msg(row->verdict || strstr(row->words.text, "the profile lacks") ||
                          strstr(row->words.text, "equal numbers of devices") ||
                          strstr(row->words.text, "does not fill") ||
                          strstr(row->words.text, "alike"),
                      "%s: %s", row->from, row->words.text);
    }
    /* What the job forbids stays forbidden, and the job is as it was. */
    ck_assert_uint_eq(job->plan.forbid.roles.count, 1);
    ck_assert_ptr_null(job->plan.search);
}
END_TEST

/* Even stages on all devices, ends alike: what `uniform` finds is in their space. */
START_TEST(each_is_the_best_by_its_own_measure)
{
    job->devices.min = DEVICES;
    compare((const char *const[]){"exact", "bmw", "uniform", "neutral", NULL}, NULL);
    const struct galvatron_verdict *neutral = rows.items[3].verdict,
                                   *theirs = rows.items[4].verdict;
    ck_assert(neutral && theirs && neutral->fits && theirs->fits);
    for (size_t i = 0; i < rows.count; i++) {
        const struct galvatron_verdict *other = rows.items[i].verdict;
        if (!other || !other->fits)
            continue;
        ck_assert_double_le(neutral->neutral_s, other->neutral_s * (1 + 1e-9));
        if (!other->notes[0])
            ck_assert_double_le(theirs->formula_s, other->formula_s * (1 + 1e-9));
    }
    ck_assert(rows.items[2].verdict && !rows.items[2].verdict->notes[0]);
    ck_assert_double_eq(rows.items[4].plan->predicted.formula_s, 0); /* ours is another formula */
}
END_TEST

START_TEST(a_given_plan_is_judged_in_place_of_searches)
{
    compare((const char *const[]){"neutral", NULL}, NULL);
    struct plan *given = plan_copy(rows.items[1].plan);
    struct galvatron_verdict before = *rows.items[1].verdict;
    double step_s = given->predicted.step_time_s;
    galvatron_rows_finish(&rows);
    compare(NULL, given);
    ck_assert_uint_eq(rows.count, 2);
    ck_assert_str_eq(rows.items[0].from, "given");
    ck_assert_double_eq(rows.items[0].verdict->formula_s, before.formula_s);
    ck_assert_double_eq(rows.items[0].verdict->neutral_s, before.neutral_s);
    ck_assert_int_eq(rows.items[0].verdict->stage[0].mb, before.stage[0].mb);
    /* And in their terms. */
    struct galvatron_plan theirs = rows.items[1].theirs;
    rows.items[1].theirs = (struct galvatron_plan){.layers = 0};
    galvatron_rows_finish(&rows);
    ck_assert_int_eq(galvatron_compare(&request, &problem, NULL, NULL, &theirs, &rows, &err), 0);
    ck_assert_double_eq(rows.items[0].verdict->neutral_s, before.neutral_s);
    ck_assert_double_eq(rows.items[0].plan->predicted.step_time_s, step_s);
}
END_TEST

START_TEST(what_there_is_not_is_told_in_words)
{
    request.device_count = 3;
    job->devices.min = 3;
    ck_assert_int_eq(galvatron_spec_of(&request, &problem.spec, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "equally many devices"));
    job->plan.memory = 1000;
    request.device_count = 2;
    job->devices.min = 1;
    ck_assert_int_eq(galvatron_spec_of(&request, &problem.spec, &err), 0);
    compare((const char *const[]){"uniform", NULL}, NULL);
    ck_assert_ptr_nonnull(strstr(rows.items[0].words.text, "no plan fits"));
    ck_assert(!rows.items[0].verdict || !rows.items[0].verdict->fits);
    ck_assert_ptr_null(rows.items[1].plan);
    ck_assert_ptr_nonnull(strstr(rows.items[1].words.text, "fits by its accounting: it takes "));
}
END_TEST

/* Without a job there is what Galvatron's profiles say alone. */
START_TEST(without_a_job_there_are_no_programs_of_ours)
{
    static const char *const theirs[] = {"neutral", NULL}, *const ours[] = {"exact", NULL};
    ck_assert_int_eq(galvatron_compare(NULL, &problem, theirs, NULL, NULL, &rows, &err), 0);
    ck_assert_uint_eq(rows.count, 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_ptr_nonnull(rows.items[i].verdict);
        ck_assert_ptr_null(rows.items[i].plan);
        ck_assert_str_eq(rows.items[i].programs.text, "no job names a model of ours");
    }
    galvatron_rows_finish(&rows);
    ck_assert_int_eq(galvatron_compare(NULL, &problem, ours, NULL, NULL, &rows, &err), -EINVAL);
    ck_assert_str_eq(err.text, "the search 'exact' needs a job and a cluster: without, there are "
                               "'galvatron' and 'neutral'");
}
END_TEST

START_TEST(a_spec_of_something_else_is_refused)
{
    struct galvatron_spec spec = problem.spec;
    ck_assert_int_eq(galvatron_spec_matches(&request, &spec, &err), 0);
    spec.types[0].count++;
    ck_assert_int_eq(galvatron_spec_matches(&request, &spec, &err), -EINVAL);
    ck_assert_ptr_nonnull(
        strstr(err.text, "other layers than the job, which has 4 of hidden size"));
    spec = problem.spec;
    spec.nodes = 1;
    ck_assert_int_eq(galvatron_spec_matches(&request, &spec, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "1 nodes of 2 devices, and the cluster 2 of 2"));
    spec = problem.spec;
    spec.batch = 9;
    ck_assert_int_eq(galvatron_spec_matches(&request, &spec, &err), -EINVAL);
    ck_assert_str_eq(err.text, "the spec's batch is 9, and the job's 8");
}
END_TEST

SUITE(compare)
{
    TCase *tcase = tcase_create("compare");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_layer_takes_what_was_measured);
    tcase_add_test(tcase, a_line_that_cannot_be_kernels_is_a_time_per_sample);
    tcase_add_test(tcase, links_are_as_fast_as_was_measured);
    tcase_add_test(tcase, every_plan_is_one_that_the_formula_knows);
    tcase_add_test(tcase, each_is_the_best_by_its_own_measure);
    tcase_add_test(tcase, a_given_plan_is_judged_in_place_of_searches);
    tcase_add_test(tcase, what_there_is_not_is_told_in_words);
    tcase_add_test(tcase, without_a_job_there_are_no_programs_of_ours);
    tcase_add_test(tcase, a_spec_of_something_else_is_refused);
    return suite_run("compare", tcase, NULL);
}
