/* trio.c - see trio.h. */
#include "tests/cluster/trio.h"

#include "common/base/memory.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct trio trio;

const char *const trio_divisions[TRIO_DIVISIONS] = {
    "pin: {pp: 1, tp: 1}", "pin: {dp: 1, pp: 1}", "pin: {dp: 1, tp: 1}",
    "pin: {dp: 2, pp: 1, tp: 1}, forbid: {zero: [0, 1, 2]}"};

void trio_start_worker(int index)
{
    static const char *const names[TRIO_NODES] = {"node-a", "node-b", "node-c"};
    char share[8], state[80];
    snprintf(share, sizeof share, "%d/%d", index, TRIO_NODES);
    snprintf(state, sizeof state, "%s/state", trio.cluster.directory);
    trio.away[index] = false;
    command_start(&trio.workers[index],
                  (const char *const[]){WORKER, "--name", names[index], "--coordinator",
                                        trio.cluster.address, "--devices", "1", "--share", share,
                                        "--memory", "256MiB", "--executor", HELD_EXECUTOR,
                                        "--state", state, NULL});
}

void trio_collect_worker(int index, int status)
{
    struct command *worker = &trio.workers[index];
    int left = command_finish(worker);
    ck_assert_msg(left == status, "worker %d left with %d: %s", index, left, worker->err);
    trio.away[index] = true;
}

void trio_await(const char *words)
{
    ck_assert_msg(command_pass(&trio.events, words), "no '%s' in %s", words,
                  command_last(&trio.events));
}

static bool all_alive(void)
{
    static struct command nodes;
    size_t i, alive = 0;
    json_t *node;
    command_start(&nodes, (const char *const[]){GIMBAL, "nodes", "-o", "json", NULL});
    ck_assert_msg(command_finish(&nodes) == 0, "%s", nodes.err);
    json_t *list = json_loads(nodes.out, 0, NULL);
    json_array_foreach(json_object_get(list, "nodes"), i, node)
    {
        alive += strcmp(json_string_value(json_object_get(node, "state")), "ALIVE") == 0;
    }
    json_decref(list);
    return alive == TRIO_NODES;
}

void trio_await_all(void)
{
    while (!all_alive())
        trio_await("\n");
}

static int count_shared_memory(void)
{
    int count = 0;
    DIR *directory = opendir("/dev/shm");
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += strstr(entry->d_name, "gimbal") != NULL;
    if (directory)
        closedir(directory);
    return count;
}

void trio_start(void)
{
    trio_start_with(NULL);
}

void trio_start_with(const char *const *arguments)
{
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    trio = (struct trio){.folder = "/tmp/gimbal-trio-XXXXXX"};
    trio.shared_memory = count_shared_memory();
    ck_assert_ptr_nonnull(mkdtemp(trio.folder));
    snprintf(trio.job_path, sizeof trio.job_path, "%s/job.yaml", trio.folder);
    snprintf(trio.checkpoints, sizeof trio.checkpoints, "%s/checkpoints", trio.folder);
    command_write_text(trio.folder);
    hold_open();
    cluster_start(&trio.cluster, arguments);
    setenv("GIMBAL_ADDRESS", trio.cluster.address, 1);
    command_start(&trio.events, (const char *const[]){GIMBAL, "events", "-w", "-o", "jsonl", NULL});
    for (int i = 0; i < TRIO_NODES; i++)
        trio_start_worker(i);
    trio_await_all();
}

/* Whoever outlives its parent becomes our child; all have ended, or will at once. */
static void check_nothing_left(void)
{
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    ck_assert_int_eq(errno, ECHILD);
    ck_assert_int_eq(count_shared_memory(), trio.shared_memory);
}

void trio_stop(void)
{
    kill(trio.events.pid, SIGINT);
    command_finish(&trio.events);
    for (int i = 0; i < TRIO_NODES; i++) {
        if (trio.away[i])
            continue;
        kill(trio.workers[i].pid, SIGTERM);
        trio_collect_worker(i, 0);
    }
    cluster_stop(&trio.cluster);
    hold_close();
    check_nothing_left();
    char *remove = xasprintf("rm -rf '%s'", trio.folder);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}

void trio_write_job_for(int devices, const char *division, const char *more)
{
    FILE *file = fopen(trio.job_path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: gimbal/v1\n"
            "name: small\n"
            "model: {family: gpt, layers: 3, hidden: 32, heads: 4, seq: 16}\n"
            "data: {text: ['%s/text']}\n"
            "train: {steps: %d, global_batch: 12, lr: 0.001}\n"
            "devices: {min: %d, max: 3}\n"
            "plan: {%s}\n"
            "eval: {every: %d, holdout: 0.1}\n"
            "%s\n",
            trio.folder, TRIO_STEPS, devices, division, TRIO_STEPS, more);
    ck_assert_int_eq(fclose(file), 0);
}

void trio_write_job(const char *division, const char *more)
{
    trio_write_job_for(2, division, more);
}

void trio_submit(void)
{
    command_start(&trio.job, (const char *const[]){GIMBAL, "submit", "-f", trio.job_path, "--wait",
                                                   "-o", "jsonl", NULL});
    snprintf(trio.name, sizeof trio.name, "j-%d", ++trio.jobs);
    trio_await(trio.name);
}

/* The newest line with these words, among those that the job's follower has printed. */
json_t *trio_event(const char *kind)
{
    char words[64];
    const char *at = NULL;
    snprintf(words, sizeof words, "\"event\":\"%s\"", kind);
    for (const char *next = trio.job.out; (next = strstr(next, words)); next++)
        at = next;
    ck_assert_msg(at != NULL, "no %s in %s", words, command_last(&trio.job));
    while (at > trio.job.out && at[-1] != '\n')
        at--;
    json_t *json = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

double trio_number(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(json_object_get(event, "more"), key);
    ck_assert_msg(json_is_number(value), "no %s", key);
    return json_number_value(value);
}

double trio_finish_job(void)
{
    int status = command_finish(&trio.job);
    ck_assert_msg(status == 0, "%d: %s", status, command_last(&trio.job));
    json_t *evaluation = trio_event("evaluation");
    double loss = trio_number(evaluation, "loss");
    json_decref(evaluation);
    ck_assert_double_gt(loss, 0);
    return loss;
}

int trio_find_victim(void)
{
    int index = TRIO_NODES - 1;
    while (index > 0 && (trio.away[index] || command_child(trio.workers[index].pid) == 0))
        index--;
    ck_assert_int_gt(command_child(trio.workers[index].pid), 0);
    return index;
}
