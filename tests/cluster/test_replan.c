/* test_replan.c - real processes: of three workers one or two are killed, or an executor, in the
 * middle of a training. It goes on with those that are left, and the loss in the end is that of a
 * training that nobody disturbed. Afterwards no process and no file is left. */
#include "common/base/memory.h"
#include "tests/cluster/command.h"
#include "tests/cluster/real_cluster.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES 3
#define STEPS 80
#define LOSS_LIMIT 1e-3

static struct cluster cluster;
static struct command workers[NODES], command;
static char folder[64], job_path[96];
static double undisturbed;

/* However the model is divided: replicas, pieces of tensors, stages, shards of the state. */
static const char *const divisions[] = {"pin: {pp: 1, tp: 1}", "pin: {dp: 1, pp: 1}",
                                        "pin: {dp: 1, tp: 1}",
                                        "pin: {dp: 2, pp: 1, tp: 1}, forbid: {zero: [0, 1, 2]}"};
#define DIVISIONS ((int)(sizeof divisions / sizeof *divisions))

static void start_worker(int index)
{
    static const char *const names[NODES] = {"node-a", "node-b", "node-c"};
    char share[8], state[80];
    snprintf(share, sizeof share, "%d/%d", index, NODES);
    snprintf(state, sizeof state, "%s/state", cluster.directory);
    command_start(&workers[index],
                  (const char *const[]){WORKER, "--name", names[index], "--coordinator",
                                        cluster.address, "--devices", "1", "--share", share,
                                        "--memory", "256MiB", "--executor", EXECUTOR, "--state",
                                        state, NULL});
}

static void await_nodes(const char *words)
{
    static struct command events;
    command_start(&events, (const char *const[]){GIMBAL, "events", "-w", NULL});
    ck_assert_msg(command_await(&events, words), "no '%s' in %s", words, events.out);
    kill(events.pid, SIGINT);
    command_finish(&events);
}

static void write_job(const char *division, int copy_every)
{
    FILE *file = fopen(job_path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: gimbal/v1\n"
            "name: small\n"
            "model: {family: gpt, layers: 3, hidden: 32, heads: 4, seq: 16}\n"
            "data: {text: ['%s/text']}\n"
            "train: {steps: %d, global_batch: 12, lr: 0.001}\n"
            "devices: {min: 2, max: 3}\n"
            "plan: {%s}\n"
            "elastic: {copy_every: %d}\n"
            "eval: {every: %d, holdout: 0.1}\n",
            folder, STEPS, division, copy_every, STEPS);
    ck_assert_int_eq(fclose(file), 0);
}

static void start_job(void)
{
    command_start(&command, (const char *const[]){GIMBAL, "submit", "-f", job_path, "--wait", "-o",
                                                  "jsonl", NULL});
    ck_assert_msg(command_await(&command, "\"event\":\"step\""), "no step");
}

/* The event's own JSON, of those that were printed; yours. */
static json_t *find_event(const char *kind)
{
    char words[64];
    snprintf(words, sizeof words, "\"event\":\"%s\"", kind);
    char *at = strstr(command.out, words);
    ck_assert_msg(at != NULL, "no %s", words);
    while (at > command.out && at[-1] != '\n')
        at--;
    json_t *json = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

static double number(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json_object_get(json, "more"), key);
    ck_assert_msg(json_is_number(value), "no %s", key);
    return json_number_value(value);
}

static double finish_job(void)
{
    ck_assert_msg(command_finish(&command) == 0, "%s", command.err);
    json_t *evaluation = find_event("evaluation");
    double loss = number(evaluation, "loss");
    json_decref(evaluation);
    ck_assert_double_gt(loss, 0);
    return loss;
}

static void check_loss(void)
{
    double loss = finish_job();
    ck_assert_msg(fabs(loss - undisturbed) < LOSS_LIMIT, "the loss is %g, undisturbed %g", loss,
                  undisturbed);
}

static void check_replan(int lost_most, int inherited)
{
    ck_assert_msg(command_await(&command, "\"event\":\"job-replanned\""), "no replan");
    ck_assert_msg(command_await(&command, "first step"), "half an event");
    json_t *replan = find_event("job-replanned");
    const char *text = json_string_value(json_object_get(replan, "text"));
    ck_assert_msg(number(replan, "steps_lost") <= lost_most, "%s", text);
    ck_assert_msg((int)number(replan, "inherited") == inherited, "%s", text);
    ck_assert_msg(strstr(text, "from memory") != NULL, "%s", text);
    json_decref(replan);
    check_loss();
}

static void setup(void)
{
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    strcpy(folder, "/tmp/gimbal-replan-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(job_path, sizeof job_path, "%s/job.yaml", folder);
    char *path = xasprintf("%s/text", folder);
    FILE *file = fopen(path, "we");
    for (int i = 0; i < 400; i++)
        fprintf(file, "%d bottles of beer on the wall\n", i);
    ck_assert_int_eq(fclose(file), 0);
    free(path);
    cluster_start(&cluster, NULL);
    setenv("GIMBAL_ADDRESS", cluster.address, 1);
    for (int i = 0; i < NODES; i++)
        start_worker(i);
    await_nodes("node-a joined");
    await_nodes("node-b joined");
    await_nodes("node-c joined");
}

static bool killed[NODES]; /* workers that are not there any more */

/* Whoever outlives its parent becomes our child; all have ended, or will at once. */
static void check_nothing_left(void)
{
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    ck_assert_int_eq(errno, ECHILD);
}

static void teardown(void)
{
    for (int i = 0; i < NODES; i++) {
        if (killed[i])
            continue;
        kill(workers[i].pid, SIGTERM);
        ck_assert_int_eq(command_finish(&workers[i]), 0);
    }
    cluster_stop(&cluster);
    check_nothing_left();
    char *remove = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}

/* One that has a rank: a division may leave a worker out. */
static int find_victim(void)
{
    int index = NODES - 1;
    while (index > 0 && command_child(workers[index].pid) == 0)
        index--;
    return index;
}

static void await_killed(int victim)
{
    ck_assert_int_eq(command_finish(&workers[victim]), 128 + SIGKILL);
    killed[victim] = true;
}

/* Its worker holds the state: nothing is lost, although nothing of it is anywhere else. */
START_TEST(a_killed_executor_costs_no_step_and_changes_no_loss)
{
    write_job(divisions[_i], 0);
    start_job();
    undisturbed = finish_job();
    start_job();
    ck_assert_int_eq(kill(command_child(workers[find_victim()].pid), SIGKILL), 0);
    check_replan(0, 1);
}
END_TEST

/* What it alone had, its neighbour has as it was behind the newest step, or the one before. */
START_TEST(a_killed_worker_costs_a_step_at_most_and_changes_no_loss)
{
    write_job(divisions[_i], 1);
    start_job();
    undisturbed = finish_job();
    start_job();
    int victim = find_victim();
    ck_assert_int_eq(kill(workers[victim].pid, SIGKILL), 0);
    check_replan(1, 0);
    await_killed(victim);
}
END_TEST

/* Too few are left; it waits for one more, and goes on from a copy, or from the beginning. */
START_TEST(two_killed_workers_change_no_loss)
{
    write_job(divisions[_i], 1);
    start_job();
    undisturbed = finish_job();
    start_job();
    for (int victim = 1; victim < NODES; victim++)
        ck_assert_int_eq(kill(workers[victim].pid, SIGKILL), 0);
    for (int victim = 1; victim < NODES; victim++)
        await_killed(victim);
    await_nodes("the cluster has 1");
    start_worker(1);
    killed[1] = false;
    check_loss();
}
END_TEST

START_TEST(a_cancelled_job_leaves_nothing)
{
    write_job(divisions[_i], 1);
    start_job();
    static struct command cancel;
    command_start(&cancel, (const char *const[]){GIMBAL, "cancel", "j-1", NULL});
    ck_assert_msg(command_finish(&cancel) == 0, "%s", cancel.err);
    ck_assert_int_ne(command_finish(&command), 0);
    for (int i = 0; i < NODES; i++)
        ck_assert_int_eq(command_child(workers[i].pid), 0);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("replan");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 180);
    tcase_add_loop_test(tcase, a_killed_executor_costs_no_step_and_changes_no_loss, 0, DIVISIONS);
    tcase_add_loop_test(tcase, a_killed_worker_costs_a_step_at_most_and_changes_no_loss, 0,
                        DIVISIONS);
    tcase_add_loop_test(tcase, two_killed_workers_change_no_loss, 0, 1);
    tcase_add_loop_test(tcase, a_cancelled_job_leaves_nothing, 0, DIVISIONS);
    return suite_run("replan", tcase, NULL);
}
