/* test_executor.c - gimbal-executor as a process, over its channel. */
#include "common/base/memory.h"
#include "common/channel/channel.h"
#include "common/models/model.h"
#include "common/plan/plan.h"
#include "common/profile/profile.h"
#include "common/rpc/message.h"
#include "proto/executor.pb-c.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_MS 60000

extern char **environ;

struct executor {
    pid_t pid;
    struct channel channel;
    char directory[64], job[96], plan[96], text[96];
};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* arguments: NULL-ended, without the program's name and the channel. */
static void start(struct executor *executor, const char *const *arguments)
{
    const char *argv[16] = {EXECUTOR, "--channel", "3"};
    int parent, child, count = 3;
    for (; *arguments; arguments++)
        argv[count++] = *arguments;
    argv[count] = NULL;
    ck_assert_int_eq(channel_pair(&parent, &child, NULL), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (child == 3)
        fcntl(child, F_SETFD, 0);
    else
        posix_spawn_file_actions_adddup2(&actions, child, 3);
    ck_assert_int_eq(posix_spawn(&executor->pid, EXECUTOR, &actions, NULL, (char **)argv, environ),
                     0);
    posix_spawn_file_actions_destroy(&actions);
    close(child);
    channel_open(&executor->channel, parent);
}

/* The next event, to be freed; NULL when the executor has closed its side. */
static Gimbal__ExecutorEvent *next(struct executor *executor)
{
    ProtobufCMessage *message;
    int rc = channel_read(&executor->channel, &gimbal__executor_event__descriptor, DEADLINE_MS,
                          &message, NULL);
    ck_assert_msg(rc == 1 || rc == -EPIPE, "no event in time");
    return rc == 1 ? (Gimbal__ExecutorEvent *)message : NULL;
}

static int finish(struct executor *executor)
{
    int status;
    channel_close(&executor->channel);
    ck_assert_int_eq(waitpid(executor->pid, &status, 0), executor->pid);
    return status;
}

static void make_job(struct executor *executor, int steps)
{
    char text[1024];
    strcpy(executor->directory, "/tmp/gimbal-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(executor->directory));
    snprintf(executor->job, sizeof executor->job, "%s/job.yaml", executor->directory);
    snprintf(executor->plan, sizeof executor->plan, "%s/plan.json", executor->directory);
    snprintf(executor->text, sizeof executor->text, "%s/text", executor->directory);
    FILE *file = fopen(executor->text, "w");
    for (int i = 0; i < 2000; i++)
        fprintf(file, "%d bottles of beer on the wall.\n", i % 100);
    fclose(file);
    snprintf(text, sizeof text,
             "apiVersion: gimbal/v1\nname: small\n"
             "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 32}\n"
             "data: {text: [%s]}\n"
             "train: {steps: %d, global_batch: 8, lr: 3.0e-3}\n"
             "eval: {every: 20, holdout: 0.05, sample: 40}\n",
             executor->text, steps);
    write_file(executor->job, text);
}

static void make_plan(struct executor *executor, int stages, int dp)
{
    struct model_config config = {
        .family = "gpt", .layers = 2, .hidden = 32, .heads = 4, .seq = 32, .vocab = 256};
    struct graph *graph;
    ck_assert_int_eq(model_build(&config, &graph, NULL), 0);
    struct plan *plan = engine_plan(graph, stages, (int[]){dp}, 1, (const char *[]){"batch"}, 2, 4,
                                    "1f1b");
    char *text = plan_encode(plan, graph);
    write_file(executor->plan, text);
    free(text);
    plan_destroy(plan);
    graph_destroy(graph);
}

static void clean(const struct executor *executor)
{
    unlink(executor->job);
    unlink(executor->plan);
    unlink(executor->text);
    rmdir(executor->directory);
}

START_TEST(a_probe_measures_every_device)
{
    struct executor executor;
    struct profile profile;
    start(&executor, (const char *[]){"--probe", "--devices", "0;0", NULL});
    Gimbal__ExecutorEvent *event = next(&executor);
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(event->event_case, GIMBAL__EXECUTOR_EVENT__EVENT_PROFILE);
    ck_assert_uint_eq(event->profile->n_device_json, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(profile_decode(event->profile->device_json[i], &profile, NULL), 0);
        ck_assert_uint_ge(profile.rate_count, 12);
        ck_assert_double_gt(profile.seconds_per_flop, 0);
        ck_assert_double_gt(profile.seconds_per_byte, 0);
        ck_assert_double_gt(profile.host.latency_s, 0);
    }
    message_free(&event->base);
    ck_assert_ptr_null(next(&executor));
    ck_assert_int_eq(finish(&executor), 0);
}
END_TEST

struct seen {
    int steps, evaluations, ready, stopped, done;
    double first_loss, last_loss, evaluation;
    size_t sample;
    char reason[512];
};

static void see_telemetry(struct seen *seen, const Gimbal__TelemetryRecord *record)
{
    if (record->record_case == GIMBAL__TELEMETRY_RECORD__RECORD_STEP) {
        if (seen->steps++ == 0)
            seen->first_loss = record->step->loss;
        seen->last_loss = record->step->loss;
    } else if (record->record_case == GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION) {
        if (record->evaluation->text.len)
            seen->sample = record->evaluation->text.len;
        else
            seen->evaluation = record->evaluation->loss;
        seen->evaluations++;
    }
}

static void see(struct executor *executor, struct seen *seen)
{
    Gimbal__ExecutorEvent *event;
    while ((event = next(executor)) != NULL) {
        seen->ready += event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_READY;
        if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY)
            see_telemetry(seen, event->telemetry);
        if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED) {
            seen->stopped++;
            seen->done += event->stopped->cause == GIMBAL__STOPPED_REQUEST__CAUSE__DONE;
            snprintf(seen->reason, sizeof seen->reason, "%s", event->stopped->reason);
        }
        message_free(&event->base);
    }
}

START_TEST(local_ranks_train_evaluate_and_write_text)
{
    struct executor executor;
    struct seen seen = {0};
    make_job(&executor, 60);
    make_plan(&executor, 2, 2);
    start(&executor, (const char *[]){"--local", "4", "--job", executor.job, "--plan",
                                      executor.plan, NULL});
    see(&executor, &seen);
    ck_assert_int_eq(finish(&executor), 0);
    ck_assert_int_eq(seen.ready, 4);
    ck_assert_int_eq(seen.stopped, 4);
    ck_assert_int_eq(seen.done, 4);
    ck_assert_int_eq(seen.steps, 60);
    ck_assert_int_eq(seen.evaluations, 4);
    ck_assert_uint_eq(seen.sample, 40);
    ck_assert_double_gt(seen.first_loss, 5);
    ck_assert_double_lt(seen.evaluation, 3.2);
    clean(&executor);
}
END_TEST

START_TEST(a_plan_for_more_ranks_is_refused_in_words)
{
    struct executor executor;
    struct seen seen = {0};
    make_job(&executor, 60);
    make_plan(&executor, 2, 2);
    start(&executor, (const char *[]){"--local", "3", "--job", executor.job, "--plan",
                                      executor.plan, NULL});
    see(&executor, &seen);
    ck_assert_int_ne(finish(&executor), 0);
    ck_assert_int_eq(seen.stopped, 1);
    ck_assert_str_eq(seen.reason, "the plan has 4 ranks, --local allows 3");
    clean(&executor);
}
END_TEST

START_TEST(unreadable_data_is_refused_with_its_path)
{
    struct executor executor;
    struct seen seen = {0};
    make_job(&executor, 60);
    make_plan(&executor, 1, 2);
    ck_assert_int_eq(unlink(executor.text), 0);
    start(&executor, (const char *[]){"--local", "2", "--job", executor.job, "--plan",
                                      executor.plan, NULL});
    see(&executor, &seen);
    ck_assert_int_ne(finish(&executor), 0);
    ck_assert_ptr_nonnull(strstr(seen.reason, executor.text));
    ck_assert_ptr_nonnull(strstr(seen.reason, "No such file"));
    clean(&executor);
}
END_TEST

START_TEST(an_executor_ends_when_its_parent_has_gone)
{
    struct executor executor;
    make_job(&executor, 1000000);
    make_plan(&executor, 2, 2);
    start(&executor, (const char *[]){"--local", "4", "--job", executor.job, "--plan",
                                      executor.plan, NULL});
    Gimbal__ExecutorEvent *event = next(&executor);
    ck_assert_ptr_nonnull(event);
    message_free(&event->base);
    int status = finish(&executor); /* closes the channel and waits */
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 130);
    clean(&executor);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("executor");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_probe_measures_every_device);
    tcase_add_test(tcase, local_ranks_train_evaluate_and_write_text);
    tcase_add_test(tcase, a_plan_for_more_ranks_is_refused_in_words);
    tcase_add_test(tcase, unreadable_data_is_refused_with_its_path);
    tcase_add_test(tcase, an_executor_ends_when_its_parent_has_gone);
    return suite_run("executor", tcase, NULL);
}
