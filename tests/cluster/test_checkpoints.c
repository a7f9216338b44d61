/* test_checkpoints.c - jobs of real processes that are broken while they save: what is listed
 * always loads, what was left behind is tidied up, and the loss at the end is the same.
 *
 * One cluster for each case: a coordinator, two workers, executors that may be killed at any
 * point of a save (see save_points.h). */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/cluster/command.h"
#include "tests/cluster/real_cluster.h"
#include "tests/cluster/save_points.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES 2
#define STEPS 6
#define EVERY 2
#define ENDLESS 1000000000

static const char *const points[] = {SAVE_POINTS(POINT_NAMES, POINT_NAMES_VOID)};
#define POINTS (sizeof points / sizeof *points)

static struct cluster cluster;
static struct command workers[NODES], command;
static char folder[64], job_path[96], point_path[96];

#define GIMBAL_RUN(...) gimbal_run((const char *const[]){GIMBAL, __VA_ARGS__, NULL})

static int gimbal_run(const char *const *words)
{
    command_start(&command, words);
    return command_finish(&command);
}

static void write_job(int steps, int every, const char *dir)
{
    FILE *file = fopen(job_path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: gimbal/v1\n"
            "name: small\n"
            "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}\n"
            "data: {text: ['%s/text']}\n"
            "train: {steps: %d, global_batch: 4, lr: 0.001}\n"
            "devices: {min: 2}\n"
            "plan: {pin: {tp: 2}}\n"
            "elastic: {replan: false}\n"
            "checkpoint: {dir: '%s', every: %d, keep: 1}\n",
            folder, steps, dir, every);
    ck_assert_int_eq(fclose(file), 0);
}

static void start_worker(int index)
{
    static const char *const names[NODES] = {"node-a", "node-b"};
    char share[8], state[80];
    snprintf(share, sizeof share, "%d/%d", index, NODES);
    snprintf(state, sizeof state, "%s/state", cluster.directory);
    command_start(&workers[index],
                  (const char *const[]){WORKER, "--name", names[index], "--coordinator",
                                        cluster.address, "--devices", "1", "--share", share,
                                        "--memory", "256MiB", "--executor", EXECUTOR, "--state",
                                        state, NULL});
}

static void setup(void)
{
    strcpy(folder, "/tmp/gimbal-saves-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(job_path, sizeof job_path, "%s/job.yaml", folder);
    snprintf(point_path, sizeof point_path, "%s/point", folder);
    char *path = xasprintf("%s/text", folder);
    FILE *file = fopen(path, "we");
    for (int i = 0; i < 400; i++)
        fprintf(file, "%d bottles of beer on the wall\n", i);
    ck_assert_int_eq(fclose(file), 0);
    free(path);
    setenv("GIMBAL_SAVE_POINT", point_path, 1);
    cluster_start(&cluster, NULL);
    setenv("GIMBAL_ADDRESS", cluster.address, 1);
    setenv("GIMBAL_EXECUTOR", EXECUTOR, 1);
    for (int i = 0; i < NODES; i++)
        start_worker(i);
}

static void teardown(void)
{
    for (int i = 0; i < NODES; i++) {
        kill(workers[i].pid, SIGTERM);
        ck_assert_int_eq(command_finish(&workers[i]), 0);
    }
    cluster_stop(&cluster);
    char *remove = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}

/* The only item of a list that a command prints as JSON, or the newest. */
static json_t *first_of(const char *list)
{
    json_t *root = json_loads(command.out, 0, NULL);
    json_t *item = json_incref(json_array_get(json_object_get(root, list), 0));
    json_decref(root);
    return item;
}

static uint64_t number_of(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* Of the newest listed checkpoint; 0 without one. Its folder is yours, where it is asked for. */
static uint64_t newest(const char *job, char **path)
{
    ck_assert_int_eq(GIMBAL_RUN("checkpoint", "list", job, "-o", "json"), 0);
    json_t *item = first_of("checkpoints");
    uint64_t step = number_of(item, "step");
    if (path)
        *path = xstrdup(json_string_value(json_object_get(item, "folder")));
    json_decref(item);
    return step;
}

static size_t count_entries(const char *path)
{
    size_t count = 0;
    DIR *directory = opendir(path);
    ck_assert_msg(directory != NULL, "%s is not there", path);
    for (struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

/* The job is done: its last step is listed, undamaged, and nothing else is left. */
static void check_saved(const char *job, const char *what)
{
    char *path;
    ck_assert_uint_eq(newest(job, &path), STEPS);
    int code = GIMBAL_RUN("checkpoint", "verify", job);
    ck_assert_msg(code == 0 && strstr(command.out, "whole and undamaged"), "%s: %s%s", what,
                  command.out, command.err);
    *strrchr(path, '/') = '\0';
    ck_assert_msg(count_entries(path) == 1, "%s: %zu folders in %s", what, count_entries(path),
                  path);
    free(path);
}

/* The job's loss as it was reported last, of all its digits. */
static double final_loss(const char *job)
{
    ck_assert_int_eq(GIMBAL_RUN("jobs", "-a", "-o", "json"), 0);
    json_t *root = json_loads(command.out, 0, NULL), *item;
    double loss = 0;
    size_t i;
    json_array_foreach(json_object_get(root, "jobs"), i, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "job")), job) == 0)
            loss = json_real_value(json_object_get(item, "loss"));
    }
    json_decref(root);
    return loss;
}

/* Submit and wait; true when it was struck on its way. */
static bool run_with_point(const char *point, long count, const char *job)
{
    FILE *file = fopen(point_path, "we");
    fprintf(file, "%s %ld\n", point, count);
    ck_assert_int_eq(fclose(file), 0);
    int code = GIMBAL_RUN("submit", "-f", job_path, "--wait");
    ck_assert_msg(code == 0, "%s %ld: %s", point, count, command.err);
    check_saved(job, point);
    return unlink(point_path) < 0;
}

START_TEST(a_save_that_is_killed_anywhere_costs_no_listed_checkpoint)
{
    char *dir = xasprintf("%s/checkpoints", folder), job[32];
    unsigned number = 1;
    size_t kills = test_soak() ? POINTS * 4 : (size_t)test_share(POINTS), struck = 0;
    write_job(STEPS, EVERY, dir);
    ck_assert_int_eq(GIMBAL_RUN("submit", "-f", job_path, "--wait"), 0);
    check_saved("j-1", "undisturbed");
    double loss = final_loss("j-1");
    size_t first = (size_t)random_below(test_seed(), 5, 0, POINTS);
    for (size_t i = 0; i < kills; i++) {
        snprintf(job, sizeof job, "j-%u", ++number);
        long count = 1 + (long)(i / POINTS);
        struck += run_with_point(points[(first + i) % POINTS], count, job) ? 1 : 0;
        ck_assert_msg(final_loss(job) == loss, "%s: the loss is %.17g, not %.17g",
                      points[(first + i) % POINTS], final_loss(job), loss);
    }
    printf("%zu of %zu kills at their points\n", struck, kills);
    ck_assert_uint_ge(2 * struck, kills);
    free(dir);
}
END_TEST

/* Follow the events of a job up to the next of this kind. */
static void await(struct command *events, const char *words)
{
    ck_assert_msg(command_await(events, words), "no '%s' in %s", words, events->out);
    const char *rest = strstr(events->out, words) + strlen(words);
    events->out_size = strlen(rest);
    memmove(events->out, rest, events->out_size + 1);
}

START_TEST(a_restart_goes_on_from_the_newest_checkpoint_and_says_so)
{
    static struct command events;
    char *dir = xasprintf("%s/checkpoints", folder);
    write_job(ENDLESS, 3, dir);
    command_start(&events, (const char *const[]){GIMBAL, "submit", "-f", job_path, "--wait", "-o",
                                                 "jsonl", NULL});
    await(&events, "\"event\":\"checkpoint\"");
    await(&events, "\"event\":\"checkpoint\"");
    ck_assert_int_eq(kill(command_child(workers[1].pid), SIGKILL), 0);
    await(&events, "restart 1 of 20, from the checkpoint of step ");
    await(&events, "\"event\":\"job-running\"");
    await(&events, "\"event\":\"checkpoint\"");
    ck_assert_int_eq(GIMBAL_RUN("cancel", "j-1", "--reason", "seen enough"), 0);
    command_finish(&events);
    ck_assert_uint_ge(newest("j-1", NULL), 9); /* one of the second epoch */
    ck_assert_int_eq(GIMBAL_RUN("checkpoint", "verify", "j-1"), 0);
    free(dir);
}
END_TEST

/* What the ranks had told each other before it died is not lost. */
START_TEST(checkpoints_go_on_when_the_coordinator_was_killed)
{
    static struct command events;
    char *dir = xasprintf("%s/checkpoints", folder);
    write_job(ENDLESS, 3, dir);
    int code = GIMBAL_RUN("submit", "-f", job_path);
    ck_assert_msg(code == 0 || code == 2, "%s", command.err); /* 2: the workers come later */
    for (int i = 0; i < 5; i++) {
        command_start(&events,
                      (const char *const[]){GIMBAL, "events", "j-1", "-w", "-o", "jsonl", NULL});
        uint64_t before = newest("j-1", NULL);
        while (newest("j-1", NULL) <= before)
            await(&events, "\"event\":\"checkpoint\"");
        kill(events.pid, SIGINT);
        command_finish(&events);
        cluster_kill(&cluster);
        cluster_restart(&cluster, NULL);
    }
    ck_assert_int_eq(GIMBAL_RUN("cancel", "j-1", "--reason", "seen enough"), 0);
    free(dir);
}
END_TEST

START_TEST(a_checkpoint_that_is_damaged_is_not_gone_on_from)
{
    static struct command events;
    char *dir = xasprintf("%s/checkpoints", folder), *path;
    write_job(ENDLESS, 60, dir); /* it is paused long before the next */
    command_start(&events, (const char *const[]){GIMBAL, "submit", "-f", job_path, "--wait", "-o",
                                                 "jsonl", NULL});
    await(&events, "\"event\":\"checkpoint\"");
    ck_assert_int_eq(GIMBAL_RUN("pause", "j-1", "--reason", "test"), 0);
    await(&events, "\"event\":\"job-paused\"");
    newest("j-1", &path);
    char *shard = xasprintf("%s/rank-00000.safetensors", path);
    FILE *file = fopen(shard, "r+e");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, -3, SEEK_END), 0);
    fputc(0x55, file);
    fputc(0xaa, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(GIMBAL_RUN("checkpoint", "verify", path), 1);
    ck_assert_msg(strstr(command.out, "it is damaged") && strstr(command.err, "not to be trusted"),
                  "%s%s", command.out, command.err);
    ck_assert_int_eq(kill(command_child(workers[1].pid), SIGKILL), 0);
    await(&events, "RestartPending");
    ck_assert_int_eq(GIMBAL_RUN("resume", "j-1"), 0);
    ck_assert_int_eq(command_finish(&events), 1);
    ck_assert_msg(strstr(events.err, "load the checkpoint '") &&
                      strstr(events.err, "it is damaged"),
                  "%s", events.err);
    free(shard);
    free(path);
    free(dir);
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_is_refused_before_the_first_step)
{
    char *dir = xasprintf("%s/text/below", folder);
    write_job(STEPS, EVERY, dir);
    ck_assert_int_eq(GIMBAL_RUN("submit", "-f", job_path, "--wait"), 1);
    ck_assert_msg(strstr(command.err, "/text' is no folder") != NULL, "%s", command.err);
    write_job(STEPS, EVERY, "relative");
    ck_assert_int_eq(GIMBAL_RUN("submit", "-f", job_path, "--wait"), 65);
    ck_assert_msg(strstr(command.err, "'relative' must begin with '/'") != NULL, "%s", command.err);
    free(dir);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("checkpoints");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 280);
    tcase_add_test(tcase, a_restart_goes_on_from_the_newest_checkpoint_and_says_so);
    tcase_add_test(tcase, checkpoints_go_on_when_the_coordinator_was_killed);
    tcase_add_test(tcase, a_checkpoint_that_is_damaged_is_not_gone_on_from);
    tcase_add_test(tcase, a_folder_that_cannot_be_made_is_refused_before_the_first_step);
    tcase_add_test(tcase, a_save_that_is_killed_anywhere_costs_no_listed_checkpoint);
    return suite_run("checkpoints", tcase, NULL);
}
