/* test_check.c - what a pin does not suit is named, with its number and with what would do. */
#include "coordinator/planner/check.h"
#include "coordinator/planner/wish.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define DEVICES 8

/* Of a model with 2 layers, 4 heads, ffn 128 and vocab 257, and a batch of 4. */
static const struct {
    const char *wishes[3];
    int devices_max;
    const char *words; /* NULL: nothing is wrong */
} cases[] = {
    {{"tp=3"},
     0,
     "plan.pin: tp 3 does not divide heads 4 and ffn 128 of the model; "
     "1, 2, 4 do"},
    {{"tp=8"}, 0, "plan.pin: tp 8 does not divide heads 4 of the model; 1, 2, 4 do"},
    {{"tp=3"}, 2, "plan.pin: tp 3 does not divide heads 4 "}, /* before there being too few */
    {{"dp=5"},
     0,
     "plan.pin: dp 5 is more than train.global_batch, 4 samples: each device needs at "
     "least one"},
    {{"dp=4", "micro_batches=2"},
     0,
     "plan.pin: dp 4 is more than the 2 samples of a micro-batch "
     "(train.global_batch 4 in 2): each device needs at least one"},
    {{"micro_batches=3"},
     0,
     "plan.pin: micro_batches 3 does not divide train.global_batch 4; "
     "1, 2, 4 do"},
    {{"pp=3"},
     0,
     "plan.pin: pp 3 is more than the model's 2 layers: each stage needs at least "
     "one"},
    {{"dp=4"}, 3, "plan.pin asks for 4 devices (dp 4), and the job may use 3 of 8 (devices.max)"},
    {{"dp=4", "tp=4"}, 0, "plan.pin asks for 16 devices (dp 4, tp 4), and there are 8 for the job"},
    {{"dp=2", "tp=2", "pp=2"}, 0, NULL},
    {{"dp=3"}, 0, NULL}, /* samples need not divide evenly */
    {{"tp=4"}, 0, NULL}, /* nor does a vocabulary */
};
#define CASES (int)(sizeof cases / sizeof *cases)

static struct job_config *read_job(void)
{
    static const char text[] = "apiVersion: gimbal/v1\n"
                               "name: small\n"
                               "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16, "
                               "vocab: 257}\n"
                               "data: {text: [corpus.txt]}\n"
                               "train: {steps: 3, global_batch: 4, lr: 0.001}\n";
    struct job_config *job;
    struct error err;
    int rc = job_config_parse(text, strlen(text), "job", &job, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    return job;
}

START_TEST(what_a_pin_does_not_suit_is_named)
{
    struct job_config *job = read_job();
    struct graph *graph;
    struct error err = {""};
    ck_assert_int_eq(planner_graph(job, &graph, NULL), 0);
    job->devices.max = cases[_i].devices_max;
    for (int i = 0; i < 3 && cases[_i].wishes[i]; i++)
        ck_assert_int_eq(wish_pin(&job->plan, cases[_i].wishes[i], &err), 0);
    const struct planner_request request = {.graph = graph, .job = job, .device_count = DEVICES};
    int rc = pins_check(&request, &err);
    ck_assert_int_eq(rc, cases[_i].words ? -EINVAL : 0);
    ck_assert_msg(!cases[_i].words || strstr(err.text, cases[_i].words), "%s", err.text);
    graph_destroy(graph);
    job_config_destroy(job);
}
END_TEST

SUITE(check)
{
    TCase *tcase = tcase_create("pins");
    tcase_add_loop_test(tcase, what_a_pin_does_not_suit_is_named, 0, CASES);
    return suite_run("check", tcase, NULL);
}
