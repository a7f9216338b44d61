/* test_sample.c - the sample of text at a training's end: there, or left out where the device has
 * no memory for the whole model beside what was trained, on all ranks alike. The device is
 * emulated, ranks are threads. */
#include "common/base/memory.h"
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/ranks.h"
#include "tests/support/suite.h"
#include "worker/trainer/trainer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS 2
#define SIZE 12

extern uint64_t emulated_limit;

static char path[] = "/tmp/gimbal-sample-XXXXXX";
static struct job_config *job;
static struct graph *graph;
static struct data_source *data;
static struct tokenizer *tokenizer;
static atomic_int samples;
static bool scarce;

static void setup(void)
{
    char text[512];
    struct error err = {""};
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < 500; i++)
        ck_assert_int_gt(dprintf(fd, "%d bottles of beer\n", i), 0);
    close(fd);
    snprintf(text, sizeof text,
             "apiVersion: gimbal/v1\nname: bottles\n"
             "model: {family: gpt, layers: 2, hidden: 16, heads: 2, seq: 8}\n"
             "data: {text: ['%s']}\n"
             "train: {steps: 2, global_batch: 4, lr: 3.0e-3}\n"
             "eval: {every: 2, holdout: 0.1, sample: %d}\n",
             path, SIZE);
    int rc = job_config_parse(text, strlen(text), "job", &job, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    rc = model_build(&job->model, job->train.dtype, &graph, &err);
    if (rc == 0)
        rc = data_open(job, 0, &data, &err);
    if (rc == 0)
        rc = tokenizer_open_job(job, &tokenizer, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
}

static void teardown(void)
{
    tokenizer_close(tokenizer);
    data_close(data);
    graph_destroy(graph);
    job_config_destroy(job);
    unlink(path);
}

/* From here on nothing more can be reserved. */
static void take_the_rest(void)
{
    struct error err;
    uint64_t room;
    ck_assert_int_eq(device_cuda.accelerator->free_bytes(&room, &err), 0);
    emulated_limit -= room;
}

static void on_step(void *context, int rank, uint64_t step, const struct step_result *result,
                    double seconds)
{
    (void)context;
    (void)result;
    (void)seconds;
    if (scarce && rank == 0 && step == 1)
        take_the_rest();
}

static void on_sample(void *context, int rank, uint64_t step, const uint8_t *text, size_t size)
{
    (void)context;
    (void)text;
    ck_assert_int_eq(rank, 0);
    ck_assert_uint_eq(step, 2);
    ck_assert_uint_eq(size, SIZE);
    samples++;
}

static void train(struct test_rank *rank)
{
    const struct reporter reporter = {.step = on_step, .sample = on_sample};
    const char *names[] = {"batch", "batch"};
    struct plan *plan = engine_plan(graph, 1, (int[]){RANKS}, 1, names, 1, 4, "1f1b");
    const struct trainer_config config = {
        .job = job,
        .graph = graph,
        .plan = plan,
        .rank = rank->rank,
        .device = &device_cuda,
        .collectives = rank->library,
        .fabric = rank->fabric,
        .program_collectives = rank->library,
        .program_fabric = rank->fabric,
        .data = data,
        .tokenizer = tokenizer,
        .reporter = &reporter,
    };
    struct error err = {""};
    int rc = trainer_run(&config, &err);
    ck_assert_msg(rc == 0, "rank %d: %d: %s", rank->rank, rc, err.text);
    plan_destroy(plan);
}

START_TEST(a_training_ends_with_a_sample_where_there_is_memory_for_it)
{
    scarce = _i == 1;
    test_ranks_run_on(device_cuda.accelerator, &collectives_local, RANKS, 20, train, NULL);
    ck_assert_int_eq(samples, scarce ? 0 : 1);
}
END_TEST

SUITE(sample)
{
    TCase *tcase = tcase_create("sample");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_training_ends_with_a_sample_where_there_is_memory_for_it, 0, 2);
    return suite_run("sample", tcase, NULL);
}
