/* test_checkpoints.c - jobs of real processes that are broken while they save: what is listed
 * always loads, what was left behind is tidied up, and the loss at the end is the same.
 *
 * One cluster for each case: a coordinator, two workers, executors that may be killed at any
 * point of a save (see save_points.h). */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/cluster/pair.h"
#include "tests/cluster/save_points.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STEPS 6
#define EVERY 2

static const char *const points[] = {SAVE_POINTS(POINT_NAMES, POINT_NAMES_VOID)};
#define POINTS (sizeof points / sizeof *points)

static char point_path[96];

static void write_job(int steps, int every, const char *dir)
{
    pair_write_job(steps,
                   "elastic: {replan: false}\n"
                   "checkpoint: {dir: '%s', every: %d, keep: 1}\n",
                   dir, every);
}

static void setup(void)
{
    snprintf(point_path, sizeof point_path, "/tmp/gimbal-point-%d", (int)getpid());
    setenv("GIMBAL_SAVE_POINT", point_path, 1); /* for the executors */
    pair_start();
}

static void teardown(void)
{
    pair_stop();
    unlink(point_path);
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
    ck_assert_uint_eq(pair_newest(job, &path), STEPS);
    int code = PAIR_GIMBAL("checkpoint", "verify", job);
    ck_assert_msg(code == 0 && strstr(pair.command.out, "whole and undamaged"), "%s: %s%s", what,
                  pair.command.out, pair.command.err);
    *strrchr(path, '/') = '\0';
    ck_assert_msg(count_entries(path) == 1, "%s: %zu folders in %s", what, count_entries(path),
                  path);
    free(path);
}

/* The job's loss as it was reported last, of all its digits. */
static double final_loss(const char *job)
{
    ck_assert_int_eq(PAIR_GIMBAL("jobs", "-a", "-o", "json"), 0);
    json_t *root = json_loads(pair.command.out, 0, NULL), *item;
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
    int code = PAIR_GIMBAL("submit", "-f", pair.job_path, "--wait");
    ck_assert_msg(code == 0, "%s %ld: %s", point, count, pair.command.err);
    check_saved(job, point);
    return unlink(point_path) < 0;
}

START_TEST(a_save_that_is_killed_anywhere_costs_no_listed_checkpoint)
{
    char job[32];
    unsigned number = 1;
    size_t kills = test_soak() ? POINTS * 4 : (size_t)test_share(POINTS), struck = 0;
    write_job(STEPS, EVERY, pair.dir);
    ck_assert_int_eq(PAIR_GIMBAL("submit", "-f", pair.job_path, "--wait"), 0);
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
}
END_TEST

START_TEST(a_restart_goes_on_from_the_newest_checkpoint_and_says_so)
{
    static struct command events;
    write_job(PAIR_ENDLESS, 3, pair.dir);
    pair_submit(&events);
    pair_await(&events, "\"event\":\"checkpoint\"");
    pair_await(&events, "\"event\":\"checkpoint\"");
    ck_assert_int_eq(kill(command_child(pair.workers[1].pid), SIGKILL), 0);
    pair_await(&events, "restart 1 of 20, from the checkpoint of step ");
    pair_await(&events, "\"event\":\"job-running\"");
    pair_await(&events, "\"event\":\"checkpoint\"");
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
    command_finish(&events);
    ck_assert_uint_ge(pair_newest("j-1", NULL), 9); /* one of the second epoch */
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "verify", "j-1"), 0);
}
END_TEST

/* What ranks have told each other of checkpoints that are listed, and that nobody will ask for any
 * more, in the store of a coordinator that was killed. */
static int count_told_again(void)
{
    sqlite3 *store;
    sqlite3_stmt *row;
    char *path = xasprintf("%s/state/store.db", pair.cluster.directory);
    ck_assert_int_eq(sqlite3_open(path, &store), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(store,
                                        "SELECT count(*) FROM kept_values"
                                        " WHERE key LIKE 'kept/checkpoint/%'"
                                        " AND CAST(substr(key, length('kept/checkpoint/') + 1) AS"
                                        " INTEGER) <= (SELECT MAX(step) FROM checkpoints)",
                                        -1, &row, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(row), SQLITE_ROW);
    int count = sqlite3_column_int(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(store);
    free(path);
    return count;
}

/* What the ranks had told each other before it died is not lost; and of checkpoints that are listed
 * it is not told again. */
START_TEST(checkpoints_go_on_when_the_coordinator_was_killed)
{
    static struct command events;
    write_job(PAIR_ENDLESS, 3, pair.dir);
    int code = PAIR_GIMBAL("submit", "-f", pair.job_path);
    ck_assert_msg(code == 0 || code == 2, "%s", pair.command.err); /* 2: the workers come later */
    for (int i = 0; i < 5; i++) {
        command_start(&events,
                      (const char *const[]){GIMBAL, "events", "j-1", "-w", "-o", "jsonl", NULL});
        uint64_t before = pair_newest("j-1", NULL);
        while (pair_newest("j-1", NULL) <= before)
            pair_await(&events, "\"event\":\"checkpoint\"");
        kill(events.pid, SIGINT);
        command_finish(&events);
        cluster_kill(&pair.cluster);
        ck_assert_int_le(count_told_again(), 1); /* one whose answer may have been lost */
        cluster_restart(&pair.cluster, NULL);
    }
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
}
END_TEST

/* Ways to spoil a shard. */
static void flip_a_byte(const char *shard)
{
    FILE *file = fopen(shard, "r+e");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, -3, SEEK_END), 0);
    int was = fgetc(file);
    ck_assert_int_eq(fseek(file, -3, SEEK_END), 0);
    fputc(was ^ 0x10, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void take_away(const char *shard)
{
    ck_assert_int_eq(unlink(shard), 0);
}

/* Its header tells of other slices than are there: the first digit of a shape is another. */
static void let_the_header_lie(const char *shard)
{
    char header[4096];
    FILE *file = fopen(shard, "r+e");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(header, 1, sizeof header, file);
    char *shape = memmem(header, size, "\"shape\":[", 9);
    ck_assert_ptr_nonnull(shape);
    ck_assert_int_eq(fseek(file, shape + 9 - header, SEEK_SET), 0);
    fputc(shape[9] == '1' ? '2' : '1', file);
    ck_assert_int_eq(fclose(file), 0);
}

static void (*const spoilers[])(const char *) = {flip_a_byte, take_away, let_the_header_lie};
#define SPOILERS ((int)(sizeof spoilers / sizeof *spoilers))

/* Of the checkpoint before the newest; 0: there is none. */
static uint64_t step_before(void)
{
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "list", "j-1", "-o", "json"), 0);
    json_t *root = json_loads(pair.command.out, 0, NULL);
    uint64_t step = pair_number(json_array_get(json_object_get(root, "checkpoints"), 1), "step");
    json_decref(root);
    return step;
}

/* The job pauses, which saves, and what it saved is spoilt; then it loses an executor. Path of that
 * checkpoint, and the step of the one before. */
static char *spoil_newest(struct command *events, int spoiler, uint64_t *before)
{
    char *path;
    ck_assert_int_eq(PAIR_GIMBAL("pause", "j-1", "--reason", "test"), 0);
    pair_await(events, "\"event\":\"job-paused\"");
    ck_assert_uint_gt(pair_newest("j-1", &path), 0);
    *before = step_before();
    char *shard = xasprintf("%s/rank-00000.safetensors", path);
    spoilers[spoiler](shard);
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "verify", path), 1);
    ck_assert_msg(strstr(pair.command.err, "cannot be trusted"), "%s", pair.command.err);
    ck_assert_int_eq(kill(command_child(pair.workers[1].pid), SIGKILL), 0);
    pair_await(events, "RestartPending");
    ck_assert_int_eq(PAIR_GIMBAL("resume", "j-1"), 0);
    free(shard);
    return path;
}

START_TEST(a_damaged_checkpoint_is_passed_over_for_the_one_before)
{
    static struct command events;
    pair_write_job(PAIR_ENDLESS,
                   "elastic: {replan: false}\ncheckpoint: {dir: '%s', every: 60, keep: 3}\n",
                   pair.dir);
    pair_submit(&events);
    for (int i = 0; i < 2; i++)
        pair_await(&events, "\"event\":\"checkpoint\"");
    uint64_t before;
    char *path = spoil_newest(&events, _i, &before);
    pair_await(&events, "\"event\":\"checkpoint-damaged\"");
    char *words = xasprintf("from the checkpoint of step %d", (int)before);
    pair_await(&events, words);
    pair_await(&events, "\"event\":\"job-running\"");
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "verify", path), 1); /* it is as it was */
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "verify", pair.dir), 65);
    ck_assert_msg(strstr(pair.command.err, "has no manifest.json: name the folder of one step"),
                  "%s", pair.command.err);
    pair_await(&events, "\"event\":\"checkpoint\"");
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "verify", "j-1"), 0); /* it is not listed any more */
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
    command_finish(&events);
    free(words);
    free(path);
}
END_TEST

START_TEST(without_an_undamaged_checkpoint_a_job_has_failed)
{
    static struct command events;
    write_job(PAIR_ENDLESS, PAIR_ENDLESS, pair.dir);
    pair_submit(&events);
    pair_await(&events, "\"event\":\"step\"");
    uint64_t before;
    char *path = spoil_newest(&events, 0, &before);
    ck_assert_uint_eq(before, 0);
    ck_assert_int_eq(command_finish(&events), 1);
    ck_assert_msg(strstr(events.err, "no older checkpoint is listed") &&
                      strstr(events.err, "load the checkpoint '") &&
                      strstr(events.err, "it is damaged"),
                  "%s", events.err);
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "list", "j-1"), 0);
    ck_assert_msg(strstr(pair.command.out, "  damaged  "), "%s", pair.command.out);
    free(path);
}
END_TEST

/* No file of an executor may be larger; RLIM_INFINITY: as large as it likes. */
static void limit_files(int node, rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};
    ck_assert_int_eq(prlimit(command_child(pair.workers[node].pid), RLIMIT_FSIZE, &limit, NULL), 0);
}

/* To one rank or to all of them. What was saved before stays, and is still the newest. */
START_TEST(a_disk_that_is_full_costs_a_checkpoint_and_no_training)
{
    static struct command events;
    write_job(PAIR_ENDLESS, 20, pair.dir);
    pair_submit(&events);
    pair_await(&events, "\"event\":\"checkpoint\"");
    for (int node = 0; node <= _i; node++)
        limit_files(node, 4096);
    pair_await(&events, "\"event\":\"checkpoint-failed\"");
    pair_await(&events, "File too large; training continues");
    uint64_t step = pair_newest("j-1", NULL);
    ck_assert_uint_ge(step, 20);
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "verify", "j-1"), 0);
    pair_await(&events, "\"event\":\"step\"");
    for (int node = 0; node <= _i; node++)
        limit_files(node, RLIM_INFINITY);
    while (pair_newest("j-1", NULL) <= step)
        pair_await(&events, "\"event\":\"checkpoint\"");
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "verify", "j-1"), 0);
    ck_assert(!strstr(events.out, "\"event\":\"job-pending\""));
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
    command_finish(&events);
}
END_TEST

#define LAST 200 /* of a training that is not over before its disk is full */

/* A training whose disk is full, at one node or all, when it has done its last step. */
static void fill_before_the_end(struct command *events, int nodes, const char *patience)
{
    pair_write_job(LAST, "checkpoint: {dir: '%s', patience: %s}\n", pair.dir, patience);
    pair_submit(events);
    pair_await(events, "\"event\":\"step\"");
    for (int node = PAIR_NODES - nodes; node < PAIR_NODES; node++)
        limit_files(node, 4096);
    pair_await(events, "\"event\":\"checkpoint-failed\"");
    pair_await(events, "its state stays in memory, and it is tried again");
}

START_TEST(a_last_step_that_cannot_be_saved_waits_in_memory)
{
    static struct command events;
    fill_before_the_end(&events, 1 + _i, "10m");
    ck_assert_int_eq(PAIR_GIMBAL("jobs"), 0);
    ck_assert_msg(strstr(pair.command.out, "NotSaved: the last step cannot be saved in "), "%s",
                  pair.command.out);
    for (int node = 0; node < PAIR_NODES; node++)
        limit_files(node, RLIM_INFINITY);
    ck_assert_int_eq(command_finish(&events), 0);
    ck_assert_uint_eq(pair_newest("j-1", NULL), LAST);
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "verify", "j-1"), 0);
}
END_TEST

START_TEST(one_that_is_given_up_has_failed)
{
    static struct command events;
    fill_before_the_end(&events, PAIR_NODES, _i == 0 ? "2s" : "10m");
    if (_i == 1)
        ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1"), 0);
    ck_assert_int_eq(command_finish(&events), 74);
    ck_assert_int_eq(PAIR_GIMBAL("jobs", "-a"), 0);
    ck_assert_msg(
        strstr(pair.command.out, "FAILED") &&
            strstr(pair.command.out, _i == 0 ? "could not be saved, tried" : "cancelled by "),
        "%s", pair.command.out);
}
END_TEST

/* Longer than the job allows: it stops, saves, and waits until that can be listed. */
START_TEST(a_job_whose_coordinator_stays_away_stops_with_a_checkpoint)
{
    static struct command events;
    pair_write_job(PAIR_ENDLESS, "checkpoint: {dir: '%s'}\nelastic: {orphan: 1s, replan: false}\n",
                   pair.dir);
    int code = PAIR_GIMBAL("submit", "-f", pair.job_path);
    ck_assert_msg(code == 0 || code == 2, "%s", pair.command.err); /* 2: the workers come later */
    const char *const follow[] = {GIMBAL, "events", "j-1", "-w", "-o", "jsonl", NULL};
    command_start(&events, follow);
    pair_await(&events, "\"event\":\"step\"");
    kill(events.pid, SIGINT);
    command_finish(&events);
    cluster_kill(&pair.cluster);
    sleep(3); /* the outage itself */
    cluster_restart(&pair.cluster, NULL);
    command_start(&events, follow);
    pair_await(&events, "\"event\":\"checkpoint\"");
    pair_await(&events, "restart 1 of 20, from the checkpoint of step ");
    pair_await(&events, "elastic.orphan");
    pair_await(&events, "\"event\":\"job-running\"");
    kill(events.pid, SIGINT);
    command_finish(&events);
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "verify", "j-1"), 0);
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
}
END_TEST

/* Of the job's own file, as the coordinator keeps it. */
START_TEST(a_job_is_exported_from_a_checkpoint_of_its_own)
{
    char *out = xasprintf("%s/exported", pair.folder);
    write_job(STEPS, EVERY, pair.dir);
    ck_assert_int_eq(PAIR_GIMBAL("submit", "-f", pair.job_path, "--wait"), 0);
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "export", "j-1", out, "--step", "5"), 65);
    ck_assert_msg(strstr(pair.command.err, "j-1 has no checkpoint of step 5"), "%s",
                  pair.command.err);
    int code = PAIR_GIMBAL("checkpoint", "export", "j-1", out);
    ck_assert_msg(code == 0 && strstr(pair.command.out, "step 6 of j-1 as gpt, "), "%s%s",
                  pair.command.out, pair.command.err);
    ck_assert_uint_eq(count_entries(out), 4);
    char *path, *elsewhere;
    pair_newest("j-1", &path);
    elsewhere = xasprintf("%s.away", path);
    ck_assert_int_eq(rename(path, elsewhere), 0);
    ck_assert_int_eq(PAIR_GIMBAL("checkpoint", "export", "j-1", "again", "--step", "6"), 65);
    ck_assert_msg(strstr(pair.command.err, "cannot be reached from here"), "%s", pair.command.err);
    free(elsewhere);
    free(path);
    free(out);
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_is_refused_before_the_first_step)
{
    char *dir = xasprintf("%s/text/below", pair.folder);
    write_job(STEPS, EVERY, dir);
    free(dir);
    ck_assert_int_eq(PAIR_GIMBAL("submit", "-f", pair.job_path, "--wait"), 1);
    ck_assert_msg(strstr(pair.command.err, "/text' is no folder") != NULL, "%s", pair.command.err);
    write_job(STEPS, EVERY, "relative");
    ck_assert_int_eq(PAIR_GIMBAL("submit", "-f", pair.job_path, "--wait"), 65);
    ck_assert_msg(strstr(pair.command.err, "'relative' must begin with '/'") != NULL, "%s",
                  pair.command.err);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("checkpoints");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 280);
    tcase_add_test(tcase, a_restart_goes_on_from_the_newest_checkpoint_and_says_so);
    tcase_add_test(tcase, checkpoints_go_on_when_the_coordinator_was_killed);
    tcase_add_loop_test(tcase, a_damaged_checkpoint_is_passed_over_for_the_one_before, 0, SPOILERS);
    tcase_add_test(tcase, without_an_undamaged_checkpoint_a_job_has_failed);
    tcase_add_loop_test(tcase, a_disk_that_is_full_costs_a_checkpoint_and_no_training, 0,
                        PAIR_NODES);
    tcase_add_loop_test(tcase, a_last_step_that_cannot_be_saved_waits_in_memory, 0, 2);
    tcase_add_loop_test(tcase, one_that_is_given_up_has_failed, 0, 2);
    tcase_add_test(tcase, a_job_whose_coordinator_stays_away_stops_with_a_checkpoint);
    tcase_add_test(tcase, a_job_is_exported_from_a_checkpoint_of_its_own);
    tcase_add_test(tcase, a_folder_that_cannot_be_made_is_refused_before_the_first_step);
    tcase_add_test(tcase, a_save_that_is_killed_anywhere_costs_no_listed_checkpoint);
    return suite_run("checkpoints", tcase, NULL);
}
