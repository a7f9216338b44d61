/* test_stops.c - jobs of real processes that are stopped, by whatever stops one: a user, their
 * node, a signal to an executor, a drain. What they have trained is saved before; where it cannot
 * be, somebody says why.
 *
 * None but the last step of these jobs is due to be saved, and they never come to it. */
#include "common/base/memory.h"
#include "tests/cluster/hold.h"
#include "tests/cluster/pair.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS 100

static struct command events;

/* It trains. */
static void submit(const char *more)
{
    pair_write_job(PAIR_ENDLESS, "checkpoint: {dir: '%s'}\n%s", pair.dir, more);
    pair_submit(&events);
    pair_await(&events, "\"event\":\"step\"");
    ck_assert_uint_eq(pair_newest("j-1", NULL), 0);
}

/* A job that has paused is saved. */
static void pause_it(void)
{
    ck_assert_int_eq(PAIR_GIMBAL("pause", "j-1"), 0);
    pair_await(&events, "\"event\":\"checkpoint\"");
    pair_await(&events, "\"event\":\"job-paused\"");
}

static void finish(void)
{
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "verify", "j-1"), 0);
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
    command_finish(&events);
}

/* The executor of a node's rank. */
static pid_t executor_of(int node)
{
    return command_child(pair.workers[node].pid);
}

START_TEST(a_job_is_cancelled_with_a_checkpoint)
{
    submit("elastic: {replan: false}\n");
    if (_i)
        pause_it();
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--save"), 0);
    if (!_i)
        pair_await(&events, "\"event\":\"checkpoint\"");
    command_finish(&events);
    ck_assert_msg(strstr(events.out, "\"event\":\"job-cancelled\"") != NULL, "%s", events.out);
    ck_assert_uint_gt(pair_newest("j-1", NULL), 0);
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "verify", "j-1"), 0);
}
END_TEST

START_TEST(a_job_without_checkpoints_is_not_cancelled_with_one)
{
    pair_write_job(PAIR_ENDLESS, "%s", "");
    PAIR_GIMBAL("submit", "-f", pair.job_path);
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--save"), 65);
    ck_assert_msg(strstr(pair.command.err, "has no checkpoint.dir"), "%s", pair.command.err);
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1"), 0);
}
END_TEST

/* Of a job that is over, with all its digits. */
static char *last_loss(const char *job)
{
    ck_assert_int_eq(PAIR_GIMBAL("jobs", job, "-o", "json"), 0);
    json_t *item = pair_first_of("jobs");
    char *loss = xasprintf("%s %.17g", json_string_value(json_object_get(item, "state")),
                           json_real_value(json_object_get(item, "loss")));
    json_decref(item);
    return loss;
}

/* Another job has the devices meanwhile. */
START_TEST(a_paused_job_that_gives_its_devices_back_loses_no_step)
{
    const char *more = _i ? "elastic: {replan: true}\n" : "elastic: {replan: false}\n";
    pair_write_job(STEPS, "checkpoint: {dir: '%s'}\n%s", pair.dir, more);
    ck_assert_int_eq(PAIR_GIMBAL("submit", "-f", pair.job_path, "--wait"), 0);
    char *undisturbed = last_loss("j-1");
    hold_take();
    pair_submit(&events);
    pair_await(&events, "\"event\":\"step\"");
    ck_assert_int_eq(PAIR_GIMBAL("pause", "j-2", "--release", "--reason", "for another"), 0);
    hold_let_go();
    pair_await(&events, "\"event\":\"job-releasing\"");
    pair_await(&events, "\"event\":\"job-pending\"");
    uint64_t step = pair_newest("j-2", NULL);
    ck_assert(step > 0 && step < STEPS);
    pair_write_job(3, "%s", "");
    ck_assert_int_eq(PAIR_GIMBAL("submit", "-f", pair.job_path, "--wait"), 0);
    ck_assert_int_eq(PAIR_GIMBAL("jobs", "j-2"), 0);
    ck_assert_msg(strstr(pair.command.out, "PENDING") && strstr(pair.command.out, "for another") &&
                      !strstr(pair.command.out, "0.000"), /* which is no loss */
                  "%s", pair.command.out);
    ck_assert_int_eq(PAIR_GIMBAL("resume", "j-2"), 0);
    ck_assert_int_eq(command_finish(&events), 0);
    char *loss = last_loss("j-2");
    ck_assert_str_eq(loss, undisturbed);
    free(loss);
    free(undisturbed);
}
END_TEST

START_TEST(a_job_without_checkpoints_keeps_its_devices_while_it_is_paused)
{
    pair_write_job(PAIR_ENDLESS, "%s", "");
    PAIR_GIMBAL("submit", "-f", pair.job_path);
    ck_assert_int_eq(PAIR_GIMBAL("pause", "j-1", "--release"), 65);
    ck_assert_msg(strstr(pair.command.err, "has no checkpoint.dir"), "%s", pair.command.err);
    ck_assert_int_eq(PAIR_GIMBAL("pause", "j-7", "--release"), 65);
    ck_assert_msg(strstr(pair.command.err, "there is no job 'j-7'"), "%s", pair.command.err);
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1"), 0);
}
END_TEST

/* Wait until the job goes on from `step`, with new executors. */
static void goes_on_from(uint64_t step)
{
    char *words = xasprintf("restart 1 of 20, from the checkpoint of step %d", (int)step);
    pair_await(&events, words);
    free(words);
}

/* All its ranks, though one node alone is stopped. */
START_TEST(a_node_that_is_stopped_saves_what_it_trains)
{
    submit("elastic: {replan: false}\n");
    if (_i)
        pause_it();
    ck_assert_int_eq(kill(pair.workers[1].pid, SIGTERM), 0);
    ck_assert_int_eq(command_finish(&pair.workers[1]), 0);
    if (!_i)
        pair_await(&events, "\"event\":\"checkpoint\"");
    goes_on_from(pair_newest("j-1", NULL));
    pair_start_worker(1);
    if (_i)
        ck_assert_int_eq(PAIR_GIMBAL("resume", "j-1"), 0);
    pair_await(&events, "\"event\":\"job-running\"");
    finish();
}
END_TEST

/* All its ranks, though one is asked, whichever; while it trains or is paused. */
START_TEST(an_executor_that_is_asked_by_a_signal_saves)
{
    bool paused = _i >= 2;
    submit("elastic: {replan: false}\n");
    if (paused)
        pause_it();
    ck_assert_int_eq(kill(executor_of(_i % 2), SIGTERM), 0);
    if (!paused)
        pair_await(&events, "\"event\":\"checkpoint\"");
    pair_await(&events, "SIGTERM: it was asked to stop, and did behind step ");
    ck_assert_msg(strstr(events.out, ", which is saved") != NULL, "%s", events.out);
    goes_on_from(pair_newest("j-1", NULL));
    if (paused)
        ck_assert_int_eq(PAIR_GIMBAL("resume", "j-1"), 0);
    pair_await(&events, "\"event\":\"job-running\"");
    finish();
}
END_TEST

/* Where executors stay, the other one has stayed, behind the step that is saved. */
START_TEST(a_signal_costs_an_elastic_job_no_step)
{
    submit("elastic: {replan: true}\n");
    ck_assert_int_eq(kill(executor_of(_i), SIGTERM), 0);
    pair_await(&events, "\"event\":\"checkpoint\"");
    pair_await(&events, "\"event\":\"job-replanned\"");
    ck_assert_msg(strstr(events.out, ", 0 steps lost,") != NULL, "%s", events.out);
    finish();
}
END_TEST

START_TEST(an_executor_that_cannot_save_says_why)
{
    pair_write_job(PAIR_ENDLESS, "%s", "elastic: {replan: false}\n");
    pair_submit(&events);
    pair_await(&events, "\"event\":\"step\"");
    ck_assert_int_eq(kill(executor_of(1), SIGTERM), 0);
    pair_await(&events, "it ends, and saves nothing: the job is saved nowhere");
    pair_await(&events, "\"event\":\"job-running\"");
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
    command_finish(&events);
}
END_TEST

/* It leaves the node behind a step that is saved, and goes on with it when there is a place. */
START_TEST(a_job_that_leaves_a_drained_node_saves_before)
{
    submit("elastic: {replan: true}\n");
    if (_i)
        pause_it();
    ck_assert_int_eq(PAIR_GIMBAL("drain", "node-b", "--reason", "fan"), 0);
    if (!_i)
        pair_await(&events, "\"event\":\"checkpoint\"");
    pair_await(&events, "node node-b is drained: fan");
    pair_await(&events, "\"event\":\"job-pending\"");
    uint64_t step = pair_newest("j-1", NULL);
    ck_assert_uint_gt(step, 0);
    if (_i)
        ck_assert_int_eq(PAIR_GIMBAL("resume", "j-1"), 0);
    ck_assert_int_eq(PAIR_GIMBAL("undrain", "node-b"), 0);
    pair_await(&events, "\"event\":\"job-replanned\"");
    char *words = xasprintf("continues after step %d from memory, 0 steps lost", (int)step);
    ck_assert_msg(strstr(events.out, words) != NULL, "no '%s' in %s", words, events.out);
    free(words);
    finish();
}
END_TEST

/* It has left its epoch and keeps its state, and nobody is there to save it with. */
START_TEST(an_executor_between_two_epochs_is_ended_by_a_signal)
{
    submit("elastic: {replan: true}\n");
    ck_assert_int_eq(PAIR_GIMBAL("drain", "node-b", "--reason", "fan"), 0);
    pair_await(&events, "\"event\":\"job-pending\"");
    pid_t kept = executor_of(0);
    ck_assert_int_eq(kill(kept, SIGTERM), 0);
    command_await_gone(kept);
    ck_assert_int_eq(PAIR_GIMBAL("undrain", "node-b"), 0);
    pair_await(&events, "\"event\":\"job-running\"");
    finish();
}
END_TEST

static void set_up(void)
{
    for (int i = 0; i < PAIR_NODES; i++)
        pair.executors[i] = HELD_EXECUTOR;
    hold_open();
    pair_start();
}

static void tear_down(void)
{
    hold_close();
    pair_stop();
}

SUITE(stops)
{
    TCase *tcase = tcase_create("stops");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_job_is_cancelled_with_a_checkpoint, 0, 2);
    tcase_add_test(tcase, a_job_without_checkpoints_is_not_cancelled_with_one);
    tcase_add_loop_test(tcase, a_paused_job_that_gives_its_devices_back_loses_no_step, 0, 2);
    tcase_add_test(tcase, a_job_without_checkpoints_keeps_its_devices_while_it_is_paused);
    tcase_add_loop_test(tcase, a_node_that_is_stopped_saves_what_it_trains, 0, 2);
    tcase_add_loop_test(tcase, an_executor_that_is_asked_by_a_signal_saves, 0, 4);
    tcase_add_loop_test(tcase, a_signal_costs_an_elastic_job_no_step, 0, 2);
    tcase_add_test(tcase, an_executor_that_cannot_save_says_why);
    tcase_add_loop_test(tcase, a_job_that_leaves_a_drained_node_saves_before, 0, 2);
    tcase_add_test(tcase, an_executor_between_two_epochs_is_ended_by_a_signal);
    return suite_run("stops", tcase, NULL);
}
