/* test_ends.c - real processes: what is lost of a training when somebody is away at its end.
 *
 * A worker that is stopped is silent like one that is cut off: its executor trains on, to the last
 * step, and nobody hears of it. */
#include "tests/cluster/trio.h"
#include "tests/support/suite.h"

#include <glob.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENT(kind) "\"event\":\"" kind "\""
#define LOOK_MS 20

/* How the model is divided over all three nodes, and whether what one of them holds is copied. */
static const struct division {
    const char *plan, *elastic;
} divisions[] = {
    {"pin: {dp: 3, pp: 1, tp: 1}, forbid: {zero: [1, 2, 3]}", ""},
    {"pin: {dp: 1, pp: 3, tp: 1}", "elastic: {copy_every: 0}"},
    {"pin: {dp: 3, pp: 1, tp: 1}, forbid: {zero: [0, 1]}",
     "elastic: {copy_every: 1, copy_share: 0}"},
};
#define DIVISIONS ((int)(sizeof divisions / sizeof *divisions))

static void await(const char *words)
{
    ck_assert_msg(command_pass(&trio.job, words), "no %s in %s", words, command_last(&trio.job));
}

static void submit(const struct division *division, bool saves)
{
    char more[320];
    snprintf(more, sizeof more, "%s\n", division->elastic);
    if (saves)
        snprintf(more, sizeof more, "%s\ncheckpoint: {dir: '%s', every: 20}\n", division->elastic,
                 trio.checkpoints);
    trio_write_job_for(TRIO_NODES, division->plan, more);
    trio_submit();
}

/* Neither as the coordinator says, nor as the steps show that it tells of. */
static void check_nothing_lost(void)
{
    int reached = 0;
    for (const char *at = trio.job.out; (at = strstr(at, EVENT("step"))); at++) {
        const char *number = strstr(at, "\"step\":");
        int step = number ? atoi(strchr(number, ':') + 1) : reached;
        ck_assert_msg(step >= reached, "step %d follows on step %d", step, reached);
        reached = step;
    }
    for (const char *at = trio.job.out; (at = strstr(at, EVENT("job-replanned"))); at++) {
        const char *lost = strstr(at, "\"steps_lost\":");
        ck_assert_msg(lost && atoi(strchr(lost, ':') + 1) == 0, "%.*s", (int)strcspn(at, "\n"), at);
    }
    ck_assert_ptr_null(strstr(trio.job.out, "begins at its first step again"));
    ck_assert_ptr_null(strstr(trio.job.out, EVENT("job-restarted")));
}

static void check_end(double undisturbed)
{
    double loss = trio_finish_job();
    ck_assert_msg(fabs(loss - undisturbed) < TRIO_LOSS_LIMIT, "the loss is %g, undisturbed %g",
                  loss, undisturbed);
    check_nothing_lost();
}

static double train_undisturbed(const struct division *division)
{
    submit(division, false);
    return trio_finish_job();
}

static void ask(struct command *command, const char *const *words)
{
    command_start(command, words);
    int status = command_finish(command);
    ck_assert_msg(status == 0, "%d: %s", status, command_last(command));
}

/* The last step is listed, and nothing older is all there is. */
static void check_saved(void)
{
    static struct command list;
    char words[32];
    ask(&list, (const char *const[]){GIMBAL, "checkpoint", "list", trio.name, "-o", "json", NULL});
    snprintf(words, sizeof words, "step-%d.", TRIO_STEPS);
    ck_assert_msg(strstr(list.out, words) != NULL, "%s", list.out);
}

START_TEST(a_worker_that_is_silent_at_the_end_costs_no_step)
{
    const struct division *division = &divisions[_i % DIVISIONS];
    bool saves = _i >= DIVISIONS;
    int victim = 1 + _i % 2;
    char lost[32];
    snprintf(lost, sizeof lost, "node-%c lost", 'a' + victim);
    double undisturbed = train_undisturbed(division);
    submit(division, saves);
    await(EVENT("step"));
    ck_assert_int_eq(kill(trio.workers[victim].pid, SIGSTOP), 0);
    trio_await(lost);
    ck_assert_int_eq(kill(trio.workers[victim].pid, SIGCONT), 0);
    check_end(undisturbed);
    if (saves)
        check_saved();
    trio_await_all();
}
END_TEST

static bool is_there(const char *pattern)
{
    glob_t found = {0};
    bool there = glob(pattern, 0, NULL, &found) == 0;
    globfree(&found);
    return there;
}

/* All ranks have written what they hold after the last step. */
static void await_shards(void)
{
    char pattern[192];
    snprintf(pattern, sizeof pattern, "%s/*/step-%d.*/rank-*", trio.checkpoints, TRIO_STEPS);
    int patience_ms = test_patience_ms(COMMAND_PATIENCE_MS);
    for (int waited = 0; !is_there(pattern); waited += LOOK_MS) {
        ck_assert_int_lt(waited, patience_ms);
        poll(NULL, 0, LOOK_MS);
    }
}

START_TEST(what_was_saved_while_the_coordinator_was_away_is_listed_when_it_is_back)
{
    const struct division *division = &divisions[_i];
    double undisturbed = train_undisturbed(division);
    submit(division, true);
    await(EVENT("step"));
    cluster_kill(&trio.cluster);
    await_shards();
    cluster_restart(&trio.cluster, NULL);
    check_end(undisturbed);
    check_saved();
}
END_TEST

SUITE(ends)
{
    TCase *tcase = tcase_create("ends");
    tcase_add_checked_fixture(tcase, trio_start, trio_stop);
    tcase_set_timeout(tcase, 240);
    tcase_add_loop_test(tcase, a_worker_that_is_silent_at_the_end_costs_no_step, 0, 2 * DIVISIONS);
    tcase_add_loop_test(tcase,
                        what_was_saved_while_the_coordinator_was_away_is_listed_when_it_is_back, 0,
                        DIVISIONS);
    return suite_run("ends", tcase, NULL);
}
