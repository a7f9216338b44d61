/* test_drill.c - rehearsals with real processes: each fault is done to a running job, which comes
 * back, or the command says that it did not. */
#include "tests/cluster/pair.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define ROUNDS 3 /* of the soak */

static struct command events, drill;

static void set_up(void)
{
    pair_start_with((const char *const[]){"--drills", "true", NULL});
}

static void start_job(const char *elastic)
{
    pair_write_job(PAIR_ENDLESS, "elastic: {stall: 2s, copy_share: 0, %s}\n", elastic);
    pair_submit(&events);
    pair_await(&events, "\"event\":\"step\"");
}

static void start_drill(const char *fault)
{
    command_start(&drill,
                  (const char *const[]){GIMBAL, "drill", "j-1", fault, "--timeout", "60s", NULL});
}

/* Returns how many steps it has lost. */
static int comes_back(void)
{
    int code = command_finish(&drill);
    ck_assert_msg(code == 0, "%d: %s%s", code, drill.out, drill.err);
    const char *lost = strstr(drill.out, "steps lost ");
    ck_assert_msg(lost != NULL, "%s", drill.out);
    ck_assert_msg(strstr(drill.out, "\ntotal ") != NULL, "%s", drill.out);
    return atoi(lost + strlen("steps lost "));
}

static void give_up(void)
{
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
    command_finish(&events);
}

static const char *const faults[] = {"kill-executor", "stop", "kill-worker"};
#define FAULTS ((int)(sizeof faults / sizeof *faults))

START_TEST(a_job_comes_back_from_every_fault)
{
    int rounds = getenv("GIMBAL_TEST_SOAK") ? ROUNDS : 1;
    bool takes_worker = strcmp(faults[_i], "kill-worker") == 0;
    start_job("max_restarts: 20");
    for (int round = 0; round < rounds; round++) {
        start_drill(faults[_i]);
        if (takes_worker) {
            ck_assert_int_eq(command_finish(&pair.workers[1]), 128 + SIGKILL);
            pair_start_worker(1);
        }
        ck_assert_msg(comes_back() <= 1, "%s", drill.out);
    }
    printf("%s: the job came back %d of %d times\n", faults[_i], rounds, rounds);
    give_up();
}
END_TEST

/* The worker that was killed, if one was, begins again. */
static void renew_worker(void)
{
    for (int i = 0; i < PAIR_NODES; i++) {
        siginfo_t ended = {0};
        id_t pid = (id_t)pair.workers[i].pid;
        ck_assert_int_eq(waitid(P_PID, pid, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        if (ended.si_pid == 0)
            continue;
        ck_assert_int_eq(command_finish(&pair.workers[i]), 128 + SIGKILL);
        pair_start_worker(i);
    }
}

/* Nobody has to leave an epoch of one rank: it breaks and waits for a device in one. Without its
 * node it begins at the newest checkpoint, and says what that costs. */
START_TEST(a_job_of_one_rank_comes_back_too)
{
    FILE *file = fopen(pair.job_path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: gimbal/v1\n"
            "name: alone\n"
            "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}\n"
            "data: {text: ['%s/text']}\n"
            "train: {steps: %d, global_batch: 4, lr: 0.001}\n"
            "devices: {max: 1}\n"
            "checkpoint: {dir: '%s', every: 1000}\n"
            "elastic: {stall: 2s}\n",
            pair.folder, PAIR_ENDLESS, pair.dir);
    ck_assert_int_eq(fclose(file), 0);
    pair_submit(&events);
    pair_await(&events, "\"event\":\"checkpoint\"");
    start_drill(faults[_i]);
    int lost = comes_back();
    bool takes_worker = strcmp(faults[_i], "kill-worker") == 0;
    ck_assert_msg(takes_worker || lost <= 1, "%s", drill.out);
    ck_assert_msg(!takes_worker || strstr(drill.out, "from the disk"), "%s", drill.out);
    renew_worker();
    give_up();
}
END_TEST

START_TEST(one_that_does_not_come_back_is_an_error)
{
    start_job("replan: false, max_restarts: 0");
    start_drill("kill-executor");
    ck_assert_int_eq(command_finish(&drill), 1);
    ck_assert_msg(strstr(drill.err, "did not recover") != NULL, "%s", drill.err);
    ck_assert_int_eq(command_finish(&events), 1);
}
END_TEST

START_TEST(what_cannot_be_done_is_refused_in_words)
{
    start_job("max_restarts: 0");
    start_drill("flood");
    ck_assert_int_eq(command_finish(&drill), 64);
    ck_assert_msg(strstr(drill.err, "unknown fault 'flood'") != NULL, "%s", drill.err);
    ck_assert_int_eq(PAIR_GIMBAL("drill", "j-1", "stop", "--rank", "2"), 65);
    ck_assert_msg(strstr(pair.command.err, "its ranks are 0 to 1") != NULL, "%s", pair.command.err);
    ck_assert_int_eq(PAIR_GIMBAL("logs", "j-1", "--rank", "7"), 65);
    ck_assert_msg(strstr(pair.command.err, "has no rank 7: its ranks are 0 to 1") != NULL, "%s",
                  pair.command.err);
    ck_assert_int_eq(PAIR_GIMBAL("logs", "j-1", "--rank", "1"), 0);
    give_up();
}
END_TEST

/* Workers that are stopped while they begin leave in other ways. */
static void await_nodes(void)
{
    struct command *watch = &pair.command;
    command_start(watch, (const char *const[]){GIMBAL, "events", "-w", NULL});
    ck_assert(command_await(watch, "node-a joined") && command_await(watch, "node-b joined"));
    kill(watch->pid, SIGINT);
    command_finish(watch);
}

START_TEST(a_coordinator_that_was_not_told_to_allows_none)
{
    await_nodes();
    ck_assert_int_eq(PAIR_GIMBAL("drill", "j-1", "stop"), 77);
    ck_assert_msg(strstr(pair.command.err, "does not allow drills") != NULL, "%s",
                  pair.command.err);
}
END_TEST

SUITE(drill)
{
    TCase *allowed = tcase_create("drills"), *not = tcase_create("no drills");
    tcase_add_checked_fixture(allowed, set_up, pair_stop);
    tcase_set_timeout(allowed, 120);
    tcase_add_loop_test(allowed, a_job_comes_back_from_every_fault, 0, FAULTS);
    tcase_add_loop_test(allowed, a_job_of_one_rank_comes_back_too, 0, FAULTS);
    tcase_add_test(allowed, one_that_does_not_come_back_is_an_error);
    tcase_add_test(allowed, what_cannot_be_done_is_refused_in_words);
    tcase_add_checked_fixture(not, pair_start, pair_stop);
    tcase_set_timeout(not, 60);
    tcase_add_test(not, a_coordinator_that_was_not_told_to_allows_none);
    return suite_run("drill", allowed, not, NULL);
}
