/* test_timed_saves.c - a job that does not count steps between its checkpoints is saved by the
 * clock: any rank may see that it is time, and all save the same step. Ranks are threads. */
#include "common/base/memory.h"
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/ranks.h"
#include "tests/support/suite.h"
#include "worker/trainer/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS 2
#define STEPS 5
#define NEVER_S 1e9

static char folder[64];
static struct job_config *job;
static struct graph *graph;
static struct data_source *data;
static struct rendezvous *meeting;
static double every_s[RANKS];
static uint64_t saved[STEPS + 1];
static int saved_count;

static void setup(void)
{
    char text[512];
    struct error err = {""};
    saved_count = 0;
    strcpy(folder, "/tmp/gimbal-timed-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    char *words = xasprintf("%s/text", folder);
    FILE *file = fopen(words, "we");
    for (int i = 0; i < 500; i++)
        fprintf(file, "%d bottles of beer\n", i);
    ck_assert_int_eq(fclose(file), 0);
    snprintf(text, sizeof text,
             "apiVersion: gimbal/v1\nname: bottles\n"
             "model: {family: gpt, layers: 2, hidden: 16, heads: 2, seq: 8}\n"
             "data: {text: ['%s']}\n"
             "train: {steps: %d, global_batch: 4, lr: 3.0e-3}\n",
             words, STEPS);
    int rc = job_config_parse(text, strlen(text), "job", &job, &err);
    if (rc == 0)
        rc = model_build(&job->model, job->train.dtype, &graph, &err);
    if (rc == 0)
        rc = data_open(job, 0, &data, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    meeting = test_rendezvous_create(60);
    free(words);
}

static void teardown(void)
{
    test_rendezvous_destroy(meeting);
    data_close(data);
    graph_destroy(graph);
    job_config_destroy(job);
    char *remove = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}

static int staged(void *context, const struct saver_report *report, struct saver_listed *listed,
                  struct error *err)
{
    (void)context, (void)listed, (void)err;
    ck_assert_msg(!report->failure, "%s", report->failure);
    ck_assert_int_le(saved_count, STEPS);
    saved[saved_count++] = report->step;
    return 0;
}

static void train(struct test_rank *rank)
{
    const struct reporter reporter = {0};
    const char *names[] = {"batch", "batch"};
    struct plan *plan = engine_plan(graph, 1, (int[]){RANKS}, 1, names, 1, 4, "1f1b");
    char *root = xasprintf("%s/saved", folder);
    const struct saver_config saving = {.root = root,
                                        .origin = {.job = "bottles", .epoch = 1},
                                        .rendezvous = meeting,
                                        .staged = staged};
    const struct trainer_config config = {
        .job = job,
        .graph = graph,
        .plan = plan,
        .rank = rank->rank,
        .device = &device_cpu,
        .collectives = rank->library,
        .fabric = rank->fabric,
        .program_collectives = rank->library,
        .program_fabric = rank->fabric,
        .data = data,
        .reporter = &reporter,
        .epoch = 1,
        .saving = &saving,
        .save_every_s = every_s[rank->rank],
    };
    struct error err = {""};
    int rc = trainer_run(&config, &err);
    ck_assert_msg(rc == 0, "rank %d: %d: %s", rank->rank, rc, err.text);
    free(root);
    plan_destroy(plan);
}

static void train_all(double first_s, double second_s)
{
    every_s[0] = first_s;
    every_s[1] = second_s;
    test_ranks_run(&collectives_local, RANKS, 60, train, NULL);
}

START_TEST(all_ranks_save_when_it_is_time_for_one)
{
    train_all(_i == 0 ? 1e-9 : NEVER_S, _i == 0 ? NEVER_S : 1e-9);
    ck_assert_int_eq(saved_count, STEPS);
    for (int i = 0; i < STEPS; i++)
        ck_assert_uint_eq(saved[i], (uint64_t)i + 1);
}
END_TEST

START_TEST(before_that_only_the_last_step_is_saved)
{
    train_all(NEVER_S, NEVER_S);
    ck_assert_int_eq(saved_count, 1);
    ck_assert_uint_eq(saved[0], STEPS);
}
END_TEST

START_TEST(who_counts_steps_has_no_clock)
{
    job->checkpoint.every = 3;
    train_all(1e-9, 1e-9);
    ck_assert_int_eq(saved_count, 2);
    ck_assert_uint_eq(saved[0], 3);
    ck_assert_uint_eq(saved[1], STEPS);
}
END_TEST

SUITE(timed_saves)
{
    TCase *tcase = tcase_create("timed_saves");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, all_ranks_save_when_it_is_time_for_one, 0, 2);
    tcase_add_test(tcase, before_that_only_the_last_step_is_saved);
    tcase_add_test(tcase, who_counts_steps_has_no_clock);
    return suite_run("timed_saves", tcase, NULL);
}
