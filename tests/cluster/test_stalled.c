/* test_stalled.c - real processes: an executor that stops in the middle of a training, without a
 * word and without an end, is named in one sentence and ended, and the job goes on. */
#include "tests/cluster/pair.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 20         /* of the soak */
#define SENTENCE_S_MAX 30 /* with the limit that a job has unless it asks for another */

static struct command events;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void setup(void)
{
    pair_start();
}

/* One of the two ranks, by turns. */
static void stop_an_executor(int round)
{
    pid_t executor = command_child(pair.workers[round % PAIR_NODES].pid);
    ck_assert_int_gt(executor, 0);
    ck_assert_int_eq(kill(executor, SIGSTOP), 0);
}

/* The sentence about the rank that was stopped; how long it took. */
static double await_sentence(int round)
{
    char words[64];
    double begin = now_s();
    snprintf(words, sizeof words, "on node-%c/0 has held up", 'a' + round % PAIR_NODES);
    pair_await(&events, "\"event\":\"rank-stalled\"");
    pair_await(&events, words);
    pair_await(&events, "its process is stopped");
    return now_s() - begin;
}

static void finish(void)
{
    char job[32];
    ck_assert_int_eq(PAIR_GIMBAL("jobs", "-o", "json"), 0);
    json_t *only = pair_first_of("jobs");
    snprintf(job, sizeof job, "%s", json_string_value(json_object_get(only, "job")));
    json_decref(only);
    ck_assert_int_eq(PAIR_GIMBAL("cancel", job, "--reason", "seen enough"), 0);
    command_finish(&events);
}

START_TEST(a_stopped_executor_is_named_and_ended_and_the_job_goes_on)
{
    bool soak = getenv("GIMBAL_TEST_SOAK") != NULL;
    int rounds = soak ? ROUNDS : 2;
    double worst_s = 0;
    pair_write_job(PAIR_ENDLESS, "elastic: {max_restarts: %d%s}\n", ROUNDS,
                   soak ? "" : ", stall: 2s");
    pair_submit(&events);
    for (int round = 0; round < rounds; round++) {
        pair_await(&events, "\"event\":\"step\"");
        stop_an_executor(round);
        double took_s = await_sentence(round);
        worst_s = took_s > worst_s ? took_s : worst_s;
        ck_assert_msg(took_s < SENTENCE_S_MAX, "the sentence came after %.1f s", took_s);
        pair_await(&events, "\"event\":\"job-replanned\"");
        pair_await(&events, "from memory");
    }
    printf(
        "%d of %d stopped executors were named and replaced, the last to be named after %.1f s\n",
        rounds, rounds, worst_s);
    finish();
}
END_TEST

START_TEST(a_job_that_is_not_elastic_fails_with_the_sentence)
{
    pair_write_job(PAIR_ENDLESS, "elastic: {stall: 2s, replan: false, max_restarts: 0}\n");
    pair_submit(&events);
    pair_await(&events, "\"event\":\"step\"");
    stop_an_executor(1);
    await_sentence(1);
    ck_assert_int_eq(command_finish(&events), 1);
    ck_assert_msg(strstr(events.err, "rank 1 on node-b/0 stalled: has held up") != NULL, "%s",
                  events.err);
}
END_TEST

SUITE(stalled)
{
    TCase *tcase = tcase_create("stalled");
    tcase_add_checked_fixture(tcase, setup, pair_stop);
    tcase_set_timeout(tcase, 90);
    tcase_add_test(tcase, a_stopped_executor_is_named_and_ended_and_the_job_goes_on);
    tcase_add_test(tcase, a_job_that_is_not_elastic_fails_with_the_sentence);
    return suite_run("stalled", tcase, NULL);
}
