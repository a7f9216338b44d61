/* pair.c - see pair.h. */
#include "tests/cluster/pair.h"

#include "common/base/memory.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair pair;

void pair_start_worker(int index)
{
    static const char *const names[PAIR_NODES] = {"node-a", "node-b"};
    const char *devices = pair.devices ? pair.devices : "1";
    const char *memory = pair.memory ? pair.memory : "256MiB";
    const char *executor = pair.executors[index] ? pair.executors[index] : EXECUTOR;
    char share[8], state[80];
    snprintf(share, sizeof share, "%d/%d", index, PAIR_NODES);
    snprintf(state, sizeof state, "%s/state", pair.cluster.directory);
    command_start(&pair.workers[index],
                  (const char *const[]){WORKER, "--name", names[index], "--coordinator",
                                        pair.cluster.address, "--devices", devices, "--share",
                                        share, "--memory", memory, "--executor", executor,
                                        "--state", state, NULL});
}

void pair_start(void)
{
    pair_start_with(NULL);
}

void pair_start_with(const char *const *arguments)
{
    strcpy(pair.folder, "/tmp/gimbal-pair-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(pair.folder));
    snprintf(pair.job_path, sizeof pair.job_path, "%s/job.yaml", pair.folder);
    snprintf(pair.dir, sizeof pair.dir, "%s/checkpoints", pair.folder);
    command_write_text(pair.folder);
    cluster_start(&pair.cluster, arguments);
    setenv("GIMBAL_ADDRESS", pair.cluster.address, 1);
    setenv("GIMBAL_EXECUTOR", EXECUTOR, 1);
    for (int i = 0; i < PAIR_NODES; i++)
        pair_start_worker(i);
}

void pair_stop(void)
{
    for (int i = 0; i < PAIR_NODES; i++) {
        kill(pair.workers[i].pid, SIGTERM);
        int status = command_finish(&pair.workers[i]);
        ck_assert_msg(status == 0, "worker %d left with %d: %s", i, status, pair.workers[i].err);
    }
    cluster_stop(&pair.cluster);
    char *remove = xasprintf("rm -rf '%s'", pair.folder);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}

void pair_write_job(int steps, const char *more, ...)
{
    va_list arguments;
    FILE *file = fopen(pair.job_path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: gimbal/v1\n"
            "name: small\n"
            "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}\n"
            "data: {text: ['%s/text']}\n"
            "train: {steps: %d, global_batch: 4, lr: 0.001}\n"
            "devices: {min: 2}\n"
            "plan: {pin: {tp: 2}}\n",
            pair.folder, steps);
    va_start(arguments, more);
    vfprintf(file, more, arguments);
    va_end(arguments);
    ck_assert_int_eq(fclose(file), 0);
}

int pair_gimbal(const char *const *words)
{
    command_start(&pair.command, words);
    return command_finish(&pair.command);
}

void pair_submit(struct command *events)
{
    command_start(events, (const char *const[]){GIMBAL, "submit", "-f", pair.job_path, "--wait",
                                                "-o", "jsonl", NULL});
}

void pair_await(struct command *events, const char *words)
{
    ck_assert_msg(command_pass(events, words), "no '%s' in %s", words, command_last(events));
}

json_t *pair_first_of(const char *list)
{
    json_t *root = json_loads(pair.command.out, 0, NULL);
    json_t *item = json_incref(json_array_get(json_object_get(root, list), 0));
    json_decref(root);
    return item;
}

uint64_t pair_number(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

uint64_t pair_newest(const char *job, char **path)
{
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "list", job, "-o", "json"), 0);
    json_t *item = pair_first_of("checkpoints");
    uint64_t step = pair_number(item, "step");
    if (path)
        *path = xstrdup(json_string_value(json_object_get(item, "folder")));
    json_decref(item);
    return step;
}
