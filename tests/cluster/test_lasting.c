/* test_lasting.c - rehearsals of faults that last for a time, with real processes: what they do
 * while they last is seen, they end by themselves, and the job goes on. */
#include "common/base/clock.h"
#include "tests/cluster/pair.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct command events, drill, spare;

static void set_up(void)
{
    pair_start_with((const char *const[]){"--drills", "true", NULL});
}

static void start_job(void)
{
    pair_write_job(PAIR_ENDLESS, "checkpoint: {dir: '%s', every: 5}\nelastic: {max_restarts: 20}\n",
                   pair.dir);
    pair_submit(&events);
    pair_await(&events, "\"event\":\"step\"");
}

#define DRILL(...)                                                                                 \
    command_start(&drill, (const char *const[]){GIMBAL, "drill", "j-1", "--timeout", "60s",        \
                                                __VA_ARGS__, NULL})

/* Events come in this order. */
static void pass_in_drill(const char *words)
{
    ck_assert_msg(command_pass(&drill, words), "no '%s' in %s", words, command_last(&drill));
}

static void drill_ends_well(void)
{
    int code = command_finish(&drill);
    ck_assert_msg(code == 0, "%d: %s%s", code, drill.out, drill.err);
}

static void give_up(void)
{
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
    command_finish(&events);
}

/* A third node with one device. */
static void start_spare(void)
{
    static struct command watch;
    char state[80];
    snprintf(state, sizeof state, "%s/state", pair.cluster.directory);
    command_start(&spare, (const char *const[]){WORKER, "--name", "node-c", "--coordinator",
                                                pair.cluster.address, "--devices", "1", "--share",
                                                "0/2", "--memory", "256MiB", "--executor", EXECUTOR,
                                                "--state", state, NULL});
    command_start(&watch, (const char *const[]){GIMBAL, "events", "-w", NULL});
    ck_assert_msg(command_await(&watch, "node-c joined"), "%s", command_last(&watch));
    kill(watch.pid, SIGINT);
    command_finish(&watch);
}

static void stop_spare(void)
{
    kill(spare.pid, SIGTERM);
    ck_assert_int_eq(command_finish(&spare), 0);
}

/* The worker is not heard of, and taken for lost. The job goes on with the spare node, and the
 * worker comes back by itself. */
START_TEST(a_job_goes_on_without_a_node_that_is_cut_off)
{
    start_spare();
    start_job();
    DRILL("cut-link", "--for", "12s");
    pass_in_drill("ordered cut-link of rank 1 on node-");
    pass_in_drill(" suspected: silent for");
    pass_in_drill(" lost: silent for");
    pass_in_drill("job-replanned");
    pass_in_drill("steps lost ");
    pass_in_drill(" joined");
    drill_ends_well();
    give_up();
    stop_spare();
}
END_TEST

/* Without a spare node the job waits until the worker is back. */
START_TEST(a_job_that_needs_the_node_waits_for_it)
{
    start_job();
    DRILL("cut-link", "--node", "node-b", "--for", "10s");
    pass_in_drill("ordered cut-link of rank 1 on node-b/0 for 10.00 s");
    pass_in_drill("node node-b lost: silent for");
    pass_in_drill("job-pending");
    pass_in_drill("node node-b joined");
    pass_in_drill("job-replanned");
    drill_ends_well();
    give_up();
}
END_TEST

/* Shorter than the patience of the coordinator: only a suspicion. */
START_TEST(one_that_is_cut_off_for_a_moment_recovers)
{
    start_job();
    DRILL("cut-link", "--node", "node-b", "--for", "3500ms");
    pass_in_drill("node node-b suspected");
    drill_ends_well();
    ck_assert_msg(strstr(drill.out, "node node-b recovered") != NULL, "%s", drill.out);
    ck_assert_msg(strstr(drill.out, "lost: silent") == NULL, "%s", drill.out);
    give_up();
}
END_TEST

/* Neither an order nor a report is faster than the link. */
START_TEST(what_a_slow_link_carries_is_late_and_the_job_goes_on)
{
    start_job();
    DRILL("slow-link", "--node", "node-b", "--delay", "700ms", "--for", "5s");
    pass_in_drill("ordered slow-link of rank 1 on node-b/0 by 700.00 ms for 5.00 s");
    double since_s = clock_s();
    ck_assert_int_eq(PAIR_GIMBAL("pause", "j-1"), 0);
    pair_await(&events, "job-paused");
    double took_s = clock_s() - since_s;
    ck_assert_msg(took_s >= 0.7, "the job was paused after %g s", took_s);
    ck_assert_int_eq(PAIR_GIMBAL("resume", "j-1"), 0);
    drill_ends_well();
    ck_assert_msg(strstr(drill.out, "lost: silent") == NULL, "%s", drill.out);
    give_up();
}
END_TEST

START_TEST(a_full_disk_costs_checkpoints_and_no_step)
{
    start_job();
    pair_await(&events, "\"event\":\"checkpoint\"");
    DRILL("fill-disk", "--node", "node-b", "--for", "5s");
    pass_in_drill("checkpoint-failed");
    pass_in_drill("No space left on device");
    drill_ends_well();
    ck_assert_msg(strstr(drill.out, "steps lost ") == NULL, "%s", drill.out);
    pair_await(&events, "\"event\":\"checkpoint-failed\"");
    pair_await(&events, "\"event\":\"checkpoint\"");
    give_up();
}
END_TEST

struct refusal {
    const char *words[5], *says;
    int code;
};

static const struct refusal refusals[] = {
    {{"slow-link"}, "slow-link needs --delay", 64},
    {{"slow-link", "--delay", "0s"}, "--delay '0s' must be more than zero", 64},
    {{"slow-link", "--delay", "2h"}, "--delay '2h' must be", 64},
    {{"slow-link", "--delay", "soon"}, "--delay", 64},
    {{"cut-link", "--for", "2h"}, "--for '2h' must be", 64},
    {{"cut-link", "--for", "-1s"}, "--for", 64},
    {{"cut-link", "--delay", "1s"}, "cut-link takes no delay", 64},
    {{"fill-disk", "--delay", "1s"}, "fill-disk takes no delay", 64},
    {{"stop", "--for", "1s"}, "stop is done at once", 64},
    {{"cut-link", "--node", "node-b", "--rank", "1"}, "either --rank or --node", 64},
    {{"cut-link", "--node", "node-z"}, "has no rank on node 'node-z'", 65},
    {{"fill-disk", "--rank", "2"}, "its ranks are 0 to 1", 65},
};
#define REFUSALS (sizeof refusals / sizeof *refusals)

static void refuses(const struct refusal *refusal)
{
    const char *words[9] = {GIMBAL, "drill", "j-1"};
    for (size_t i = 0; i < 5; i++)
        words[3 + i] = refusal->words[i];
    int code = pair_gimbal(words);
    ck_assert_msg(code == refusal->code, "%s: %d: %s", refusal->says, code, pair.command.err);
    ck_assert_msg(strstr(pair.command.err, refusal->says) != NULL, "no '%s' in %s", refusal->says,
                  pair.command.err);
}

START_TEST(nonsense_is_refused_in_words)
{
    start_job();
    for (size_t i = 0; i < REFUSALS; i++)
        refuses(&refusals[i]);
    give_up();
}
END_TEST

START_TEST(a_coordinator_that_was_not_told_to_allows_none)
{
    static const struct refusal of[] = {
        {{"cut-link"}, "does not allow drills", 77},
        {{"slow-link", "--delay", "1s"}, "does not allow drills", 77},
        {{"fill-disk"}, "does not allow drills", 77},
    };
    start_job();
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        refuses(&of[i]);
    give_up();
}
END_TEST

SUITE(lasting)
{
    TCase *allowed = tcase_create("lasting"), *not = tcase_create("no drills");
    tcase_add_checked_fixture(allowed, set_up, pair_stop);
    tcase_set_timeout(allowed, 120);
    tcase_add_test(allowed, a_job_goes_on_without_a_node_that_is_cut_off);
    tcase_add_test(allowed, a_job_that_needs_the_node_waits_for_it);
    tcase_add_test(allowed, one_that_is_cut_off_for_a_moment_recovers);
    tcase_add_test(allowed, what_a_slow_link_carries_is_late_and_the_job_goes_on);
    tcase_add_test(allowed, a_full_disk_costs_checkpoints_and_no_step);
    tcase_add_test(allowed, nonsense_is_refused_in_words);
    tcase_add_checked_fixture(not, pair_start, pair_stop);
    tcase_set_timeout(not, 60);
    tcase_add_test(not, a_coordinator_that_was_not_told_to_allows_none);
    return suite_run("lasting drills", allowed, not, NULL);
}
