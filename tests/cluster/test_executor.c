/* test_executor.c - gimbal-executor as a process, over its channel. */
#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/profile/profile.h"
#include "tests/support/engine.h"
#include "tests/support/executors.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct executor executor;
static struct executor_job job;
static struct executor_seen seen;

static void make_job(int steps, int stages, int dp)
{
    seen = (struct executor_seen){0};
    executor_job_make(&job, steps);
    struct graph *graph = executor_job_graph(&job);
    struct plan *plan =
        engine_plan(graph, stages, (int[]){dp}, 1, (const char *[]){"batch"}, 2, 4, "1f1b");
    executor_job_plan(&job, plan);
    plan_destroy(plan);
    graph_destroy(graph);
}

static void start(const char *ranks)
{
    executor_start(&executor, EXECUTOR,
                   (const char *[]){"--local", ranks, "--job", job.job, "--plan", job.plan, NULL});
}

/* What GPT has, and what LLaMA has beside it. */
static void check_rates(const struct profile *profile, enum element element)
{
    static const char *const names[] = {
        "norm",     "qkv",    "causal_attention",  "fc1",  "gelu", "rmsnorm", "query",
        "keyvalue", "rotary", "grouped_attention", "gate", "up",   "swiglu",  "down"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct profile_rate *rate = profile->rates, *end = rate + profile->rate_count;
        while (rate < end && (rate->element != element || strcmp(rate->operation, names[i]) != 0))
            rate++;
        ck_assert_msg(rate < end, "%s has no rate in element %d", names[i], element);
        for (int d = 0; d < DIRECTIONS; d++)
            ck_assert_double_gt(
                rate->fixed_s[d] + rate->seconds_per_flop[d] + rate->seconds_per_byte[d], 0);
    }
}

START_TEST(a_probe_measures_every_device)
{
    struct profile profile;
    executor_start(&executor, EXECUTOR, (const char *[]){"--probe", "--devices", "0;0", NULL});
    Gimbal__ExecutorEvent *event = executor_next(&executor);
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(event->event_case, GIMBAL__EXECUTOR_EVENT__EVENT_PROFILE);
    ck_assert_uint_eq(event->profile->n_device_json, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(profile_decode(event->profile->device_json[i], &profile, NULL), 0);
        check_rates(&profile, ELEMENT_F32);
        check_rates(&profile, ELEMENT_BF16);
        ck_assert_double_gt(profile.seconds_per_flop, 0);
        ck_assert_double_gt(profile.seconds_per_flop_bf16, 0);
        ck_assert_double_gt(profile.seconds_per_byte, 0);
        ck_assert_double_gt(profile.host.latency_s, 0);
    }
    message_free(&event->base);
    ck_assert_ptr_null(executor_next(&executor));
    ck_assert_int_eq(executor_finish(&executor), 0);
}
END_TEST

/* What a probe answers of core 0, kept in this folder; yours. */
static Gimbal__ExecutorEvent *probe_kept(const char *folder)
{
    executor_start(&executor, EXECUTOR,
                   (const char *[]){"--probe", "--devices", "0", "--kept", folder, NULL});
    Gimbal__ExecutorEvent *event = executor_next(&executor);
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(event->event_case, GIMBAL__EXECUTOR_EVENT__EVENT_PROFILE);
    ck_assert_int_eq(executor_finish(&executor), 0);
    return event;
}

static void damage(const char *folder)
{
    char *command = xasprintf("truncate -s 100 '%s'/*.json", folder);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

START_TEST(what_a_probe_measured_it_keeps)
{
    char folder[] = "/tmp/gimbal-kept-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    Gimbal__ExecutorEvent *first = probe_kept(folder), *second = probe_kept(folder);
    ck_assert(!first->profile->kept && second->profile->kept);
    ck_assert_str_eq(second->profile->device_json[0], first->profile->device_json[0]);
    ck_assert_uint_eq(second->profile->measured_unix_ms, first->profile->measured_unix_ms);
    ck_assert_str_eq(second->profile->note, "");
    damage(folder);
    Gimbal__ExecutorEvent *third = probe_kept(folder);
    ck_assert(!third->profile->kept);
    ck_assert_ptr_nonnull(strstr(third->profile->note, folder));
    ck_assert_ptr_nonnull(strstr(third->profile->note, "; measured anew"));
    ck_assert_uint_gt(third->profile->measured_unix_ms, first->profile->measured_unix_ms);
    Gimbal__ExecutorEvent *events[] = {first, second, third};
    for (int i = 0; i < 3; i++)
        message_free(&events[i]->base);
    char *remove = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}
END_TEST

START_TEST(local_ranks_train_evaluate_and_write_text)
{
    make_job(60, 2, 2);
    start("4");
    executor_see_all(&executor, &seen);
    ck_assert_int_eq(executor_finish(&executor), 0);
    ck_assert_int_eq(seen.ready, 4);
    ck_assert_int_eq(seen.stopped, 4);
    ck_assert_int_eq(seen.done, 4);
    ck_assert_int_eq(seen.steps, 60);
    ck_assert_int_eq(seen.evaluations, 4);
    ck_assert_uint_eq(seen.sample, 40);
    ck_assert_double_gt(seen.loss[0], 5);
    ck_assert_double_lt(seen.evaluation, 3.2);
    executor_job_clean(&job);
}
END_TEST

START_TEST(a_plan_for_more_ranks_is_refused_in_words)
{
    make_job(60, 2, 2);
    start("3");
    executor_see_all(&executor, &seen);
    ck_assert_int_ne(executor_finish(&executor), 0);
    ck_assert_int_eq(seen.stopped, 1);
    ck_assert_str_eq(seen.reason, "the plan has 4 ranks, --local allows 3");
    executor_job_clean(&job);
}
END_TEST

START_TEST(unreadable_data_is_refused_with_its_path)
{
    make_job(60, 1, 2);
    ck_assert_int_eq(unlink(job.text), 0);
    start("2");
    executor_see_all(&executor, &seen);
    ck_assert_int_ne(executor_finish(&executor), 0);
    ck_assert_ptr_nonnull(strstr(seen.reason, job.text));
    ck_assert_ptr_nonnull(strstr(seen.reason, "No such file"));
    executor_job_clean(&job);
}
END_TEST

/* One rank alone waits for no other, and looks by itself. */
START_TEST(an_executor_ends_when_its_parent_has_gone)
{
    make_job(1000000, _i ? 2 : 1, _i ? 2 : 1);
    start(_i ? "4" : "1");
    Gimbal__ExecutorEvent *event = executor_next(&executor);
    ck_assert_ptr_nonnull(event);
    message_free(&event->base);
    int status = executor_finish(&executor); /* closes the channel and waits */
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 130);
    executor_job_clean(&job);
}
END_TEST

/* By a process that has not started it. */
static void terminate_as_stranger(void)
{
    pid_t stranger = fork();
    int status;
    if (stranger == 0)
        _exit(kill(executor.pid, SIGTERM) != 0);
    ck_assert_int_eq(waitpid(stranger, &status, 0), stranger);
    ck_assert_int_eq(status, 0);
}

/* Start it with what it logs in a pipe; its end for reading. */
static FILE *start_with_log(const char *const *arguments)
{
    int ends[2], own = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    executor_start(&executor, EXECUTOR, arguments);
    ck_assert_int_eq(dup2(own, STDERR_FILENO), STDERR_FILENO);
    close(own);
    close(ends[1]);
    return fdopen(ends[0], "r");
}

static void await_line(FILE *log, const char *words)
{
    char line[512] = "";
    while (!strstr(line, words))
        ck_assert_msg(fgets(line, sizeof line, log) != NULL, "it ends without '%s'", words);
}

/* Its parent has heard from another rank, which stopped because of this one, that all is over. */
START_TEST(an_executor_that_ends_by_a_signal_says_so_though_its_parent_wants_it_gone)
{
    char checkpoints[sizeof job.directory + 16];
    make_job(1000000, 1, 2);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", job.directory);
    FILE *log = start_with_log((const char *[]){"--local", "2", "--job", job.job, "--plan",
                                                job.plan, "--checkpoint", checkpoints, NULL});
    while (seen.steps == 0) {
        Gimbal__ExecutorEvent *event = executor_next(&executor);
        ck_assert_ptr_nonnull(event);
        executor_see(&seen, event);
        message_free(&event->base);
    }
    terminate_as_stranger();
    await_line(log, "all ranks stop after a step");
    ck_assert_int_eq(kill(executor.pid, SIGTERM), 0);
    executor_see_all(&executor, &seen);
    ck_assert(WIFEXITED(executor_finish(&executor)));
    ck_assert_int_eq(seen.stopped, 2);
    ck_assert_msg(strncmp(seen.reason, "SIGTERM: it was asked to stop, and did behind", 45) == 0 &&
                      strstr(seen.reason, ", which is saved"),
                  "%s", seen.reason);
    fclose(log);
    char *remove = xasprintf("rm -rf '%s'", checkpoints);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
    executor_job_clean(&job);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("executor");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_probe_measures_every_device);
    tcase_add_test(tcase, what_a_probe_measured_it_keeps);
    tcase_add_test(tcase, local_ranks_train_evaluate_and_write_text);
    tcase_add_test(tcase, a_plan_for_more_ranks_is_refused_in_words);
    tcase_add_test(tcase, unreadable_data_is_refused_with_its_path);
    tcase_add_loop_test(tcase, an_executor_ends_when_its_parent_has_gone, 0, 2);
    tcase_add_test(tcase,
                   an_executor_that_ends_by_a_signal_says_so_though_its_parent_wants_it_gone);
    return suite_run("executor", tcase, NULL);
}
