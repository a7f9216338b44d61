/* test_slow.c - real processes: a node that has lost much of its processor time is named as slow,
 * with the factor, and keeps its executor; where the plan can follow, the job is divided anew. */
#include "tests/cluster/pair.h"
#include "tests/cluster/quota.h"
#include "tests/support/suite.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static struct command events;

/* A process that computes without an end on the cores of another, which so has half of them. */
static pid_t compete_with(pid_t other)
{
    cpu_set_t cores;
    ck_assert_int_eq(sched_getaffinity(other, sizeof cores, &cores), 0);
    pid_t rival = check_fork();
    if (rival == 0) {
        if (sched_setaffinity(0, sizeof cores, &cores) < 0)
            _exit(1);
        for (volatile unsigned long i = 0;; i++)
            ;
    }
    return rival;
}

/* One that computes for most of its time. */
static void write_job(void)
{
    FILE *file = fopen(pair.job_path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: gimbal/v1\n"
            "name: busy\n"
            "model: {family: gpt, layers: 2, hidden: 128, heads: 4, seq: 64}\n"
            "data: {text: ['%s/text']}\n"
            "train: {steps: %d, global_batch: 8, lr: 0.001}\n"
            "devices: {min: 2}\n"
            "plan: {pin: {dp: 2}}\n"
            "elastic: {replan: false, max_restarts: 0}\n",
            pair.folder, PAIR_ENDLESS);
    ck_assert_int_eq(fclose(file), 0);
}

static void set_up(void)
{
    pair_start();
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    ck_assert_int_eq(clock_gettime(clock, &now), 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Of a processor, over some lines of progress. It is less than all of one: a rank waits for the
 * others, and for whoever else is on this machine. */
static double share_of(pid_t pid)
{
    clockid_t processor;
    ck_assert_int_eq(clock_getcpuclockid(pid, &processor), 0);
    double used = seconds(processor), began = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < 3; i++)
        pair_await(&events, "\"event\":\"step\"");
    return (seconds(processor) - used) / (seconds(CLOCK_MONOTONIC) - began);
}

/* Much of its time, taken by a rival or by a quota. A quota of a third of what it takes leaves it
 * half of its speed: it no longer waits for the others, who wait for it. */
struct brake {
    const char *name;
    void (*press)(pid_t executor);
    void (*release)(pid_t executor);
};

static pid_t rival;

static void start_rival(pid_t executor)
{
    rival = compete_with(executor);
}

static void stop_rival(pid_t executor)
{
    (void)executor;
    kill(rival, SIGKILL);
}

static void press_quota(pid_t executor)
{
    const char *why_not = quota_open();
    ck_assert_msg(why_not == NULL, "%s", why_not);
    quota_limit(executor, share_of(executor) / 3);
}

static void release_quota(pid_t executor)
{
    quota_lift(executor);
    ck_assert(quota_close());
}

static const struct brake brakes[] = {{"a rival on its cores", start_rival, stop_rival},
                                      {"a quota", press_quota, release_quota}};
enum { RIVAL, QUOTA };

START_TEST(a_slow_node_is_named_and_never_ended)
{
    const struct brake *brake = &brakes[_i];
    write_job();
    pair_submit(&events);
    pair_await(&events, "\"event\":\"step\"");
    pid_t executor = command_child(pair.workers[1].pid);
    brake->press(executor);
    pair_await(&events, "\"event\":\"node-slow\"");
    pair_await(&events, "rank 1 on node-b/0 takes");
    ck_assert_msg(command_await(&events, "\"factor\":"), "no factor");
    double factor = atof(strstr(events.out, "\"factor\":") + strlen("\"factor\":"));
    printf("a node is braked by %s, and slow by a factor of %.2f\n", brake->name, factor);
    ck_assert_int_eq(PAIR_GIMBAL("nodes", "node-b"), 0);
    ck_assert_msg(strstr(pair.command.out, "device 0 takes ") != NULL, "%s", pair.command.out);
    ck_assert_int_eq(command_child(pair.workers[1].pid), executor);
    brake->release(executor);
    pair_await(&events, "\"event\":\"node-recovered-speed\"");
    ck_assert_int_eq(command_child(pair.workers[1].pid), executor);
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
    command_finish(&events);
}
END_TEST

/* Either brake will do where minutes are dear; a quota, where there can be one. */
SUITE(slow)
{
    TCase *tcase = tcase_create("slow");
    const char *why_not = quota_open();
    if (why_not)
        suite_skip("a quota", why_not);
    else
        quota_close();
    tcase_add_checked_fixture(tcase, set_up, pair_stop);
    tcase_set_timeout(tcase, 200);
    if (why_not || test_soak())
        tcase_add_loop_test(tcase, a_slow_node_is_named_and_never_ended, RIVAL, RIVAL + 1);
    if (!why_not)
        tcase_add_loop_test(tcase, a_slow_node_is_named_and_never_ended, QUOTA, QUOTA + 1);
    return suite_run("slow", tcase, NULL);
}
