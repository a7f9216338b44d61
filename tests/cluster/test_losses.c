/* test_losses.c - real processes: of three nodes one is lost and comes back with nothing, and the
 * executors on the other two are killed before, while their job recovers, or in the midst of the
 * move. One of them had the copies of what was on that node, and its worker still has them: a step
 * is lost at most, and the loss in the end is that of a training that nobody disturbed. */
#include "tests/cluster/trio.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENT(kind) "\"event\":\"" kind "\""

/* Shards of all that there is, and stages. */
static const char *const divisions[] = {"pin: {dp: 3, pp: 1, tp: 1}, forbid: {zero: [0, 1, 2]}",
                                        "pin: {dp: 1, pp: 3, tp: 1}"};

/* Of the second loss. */
enum moment { BEFORE, QUIESCE, MOVE, MOMENTS };

static void kill_executors(int lost)
{
    for (int i = 0; i < TRIO_NODES; i++) {
        pid_t executor = i == lost ? 0 : command_child(trio.workers[i].pid);
        if (executor > 0)
            ck_assert_int_eq(kill(executor, SIGKILL), 0);
    }
}

/* Files of states that a worker holds. */
static int count_files(pid_t worker)
{
    char path[64], link[320], name[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)worker);
    DIR *directory = opendir(path);
    ck_assert_ptr_nonnull(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        snprintf(link, sizeof link, "%s/%s", path, entry->d_name);
        ssize_t size = readlink(link, name, sizeof name - 1);
        name[size > 0 ? size : 0] = '\0';
        count += strstr(name, "gimbal-state") != NULL;
    }
    closedir(directory);
    return count;
}

static void await(const char *words)
{
    ck_assert_msg(command_pass(&trio.job, words), "no %s in %s", words, command_last(&trio.job));
}

/* It is held. What jobs before it had nobody has any more. */
static void start_job(const char *division)
{
    trio_write_job_for(TRIO_NODES, division, "elastic: {copy_every: 1, copy_share: 0}");
    hold_take();
    trio_submit();
    await(EVENT("step"));
    for (int i = 0; i < TRIO_NODES; i++)
        ck_assert_int_eq(count_files(trio.workers[i].pid), 1);
}

static void lose(int node, enum moment moment)
{
    if (moment == BEFORE)
        kill_executors(node);
    ck_assert_int_eq(kill(trio.workers[node].pid, SIGKILL), 0);
    trio_collect_worker(node, 128 + SIGKILL);
    hold_let_go();
    if (moment == QUIESCE) {
        await(EVENT("job-replanning"));
        kill_executors(node);
    }
    trio_start_worker(node);
    if (moment == MOVE) {
        await(EVENT("job-starting"));
        kill_executors(node);
    }
}

/* There may have been one, or two. */
static void check_replans(void)
{
    int replans = 0;
    for (const char *at = trio.job.out; (at = strstr(at, EVENT("job-replanned"))); at++) {
        const char *lost = strstr(at, "\"steps_lost\":"), *memory = strstr(at, "from memory");
        const char *end = strchr(at, '\n');
        ck_assert(lost && memory && end);
        ck_assert_msg(memory < end && atoi(strchr(lost, ':') + 1) <= 1, "%.*s", (int)(end - at),
                      at);
        replans++;
    }
    ck_assert_int_ge(replans, 1);
}

static double finish_job(void)
{
    double loss = trio_finish_job();
    check_replans();
    return loss;
}

START_TEST(a_node_and_those_that_had_its_copies_cost_a_step_at_most)
{
    const char *division = divisions[_i];
    start_job(division);
    hold_let_go();
    double undisturbed = trio_finish_job();
    for (enum moment moment = BEFORE; moment < MOMENTS; moment++) {
        int node = ((int)moment + _i) % TRIO_NODES;
        start_job(division);
        lose(node, moment);
        double loss = finish_job();
        ck_assert_msg(fabs(loss - undisturbed) < TRIO_LOSS_LIMIT, "the loss is %g, undisturbed %g",
                      loss, undisturbed);
    }
}
END_TEST

SUITE(losses)
{
    TCase *tcase = tcase_create("losses");
    tcase_add_checked_fixture(tcase, trio_start, trio_stop);
    tcase_set_timeout(tcase, 240);
    tcase_add_loop_test(tcase, a_node_and_those_that_had_its_copies_cost_a_step_at_most, 0,
                        sizeof divisions / sizeof *divisions);
    return suite_run("losses", tcase, NULL);
}
