/* test_gimbal.c - the command gimbal as people run it: alone, and with a cluster of its own. */
#include "tests/cluster/real_cluster.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 24

static char folder[64];
static char out[1 << 16], err[1 << 16]; /* what the last run printed */

static void make_folder(void)
{
    strcpy(folder, "/tmp/test_gimbal.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("GIMBAL_EXECUTOR", EXECUTOR, 1);
    unsetenv("GIMBAL_ADDRESS");
}

static void remove_folder(void)
{
    static const char *const names[] = {"out", "err", "job.yaml", "text", "plan.json"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    ck_assert_int_eq(rmdir(folder), 0); /* and nothing else was left in it */
}

static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void read_file(const char *name, char *to, size_t size)
{
    FILE *file = fopen(in_folder(name), "r");
    ck_assert_ptr_nonnull(file);
    to[fread(to, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* Its streams go to files, but `fd` to the descriptor `to`. */
static pid_t start_to(const char *const *words, int fd, int to)
{
    char *argv[WORDS_MAX] = {"gimbal"};
    posix_spawn_file_actions_t files;
    pid_t pid;
    for (int i = 0; words[i]; i++)
        argv[i + 1] = (char *)words[i];
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, in_folder("out"), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_addopen(&files, 2, in_folder("err"), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    if (fd >= 0)
        posix_spawn_file_actions_adddup2(&files, to, fd);
    ck_assert_int_eq(posix_spawn(&pid, GIMBAL, &files, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

static int finish(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    read_file("out", out, sizeof out);
    read_file("err", err, sizeof err);
    ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

#define RUN(...) finish(start_to((const char *const[]){__VA_ARGS__, NULL}, -1, -1))

/* A job of so many steps on a text of its own. */
static void write_wide_job(int hidden, int steps, const char *more)
{
    char text[1024];
    FILE *file = fopen(in_folder("text"), "w");
    for (int i = 0; i < 400; i++)
        fprintf(file, "%d bottles of beer on the wall\n", i);
    fclose(file);
    snprintf(text, sizeof text,
             "apiVersion: gimbal/v1\nname: bottles\n"
             "model: {family: gpt, layers: 2, hidden: %d, heads: 2, seq: 32}\n"
             "data: {text: ['%s']}\n"
             "train: {steps: %d, global_batch: 8, lr: 3.0e-3}\n"
             "eval: {every: %d, holdout: 0.1, sample: 40}\n%s",
             hidden, in_folder("text"), steps, steps, more);
    write_file("job.yaml", text);
}

static void write_job(int steps, const char *more)
{
    write_wide_job(32, steps, more);
}

/* Member of an object on stdout, which is all there is. */
static json_t *object_out(const char *kind)
{
    json_t *json = json_loads(out, 0, NULL);
    ck_assert_ptr_nonnull(json);
    ck_assert_str_eq(json_string_value(json_object_get(json, "apiVersion")), "gimbal/v1");
    ck_assert_str_eq(json_string_value(json_object_get(json, "kind")), kind);
    return json;
}

START_TEST(misspelt_commands_and_flags_are_usage)
{
    ck_assert_int_eq(RUN("jbos"), 64);
    ck_assert_str_eq(err, "gimbal: unknown command 'jbos'; did you mean 'jobs'?\n");
    ck_assert_int_eq(RUN("jobs", "--wacth"), 64);
    ck_assert_str_eq(err, "gimbal jobs: unknown flag --wacth; did you mean --watch?\n");
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(RUN("plan", "shwo"), 64);
    ck_assert_str_eq(err, "gimbal: unknown command 'plan shwo'; did you mean 'plan show'?\n");
    ck_assert_int_eq(RUN("plan", "show"), 64);
    ck_assert_ptr_nonnull(strstr(err, "needs a JOB, or a job file"));
    ck_assert_int_eq(RUN("train"), 64);
    ck_assert_int_eq(RUN("submit", "-f", "other.yaml", "job.yaml"), 64);
    ck_assert_str_eq(err, "gimbal submit: 'job.yaml' is a second job file, besides -f "
                          "other.yaml\n");
    ck_assert_int_eq(RUN("plan", "what-if", "--add", "0", "job.yaml"), 64);
    ck_assert_ptr_nonnull(strstr(err, "--add '0' must be a whole number, 1 to "));
    ck_assert_int_eq(RUN("plan", "what-if", "-f", "other.yaml", "job.yaml"), 64);
    ck_assert_str_eq(err, "gimbal plan what-if: 'job.yaml' is a second job file, besides -f "
                          "other.yaml\n");
    ck_assert_int_eq(RUN("version", "job.yaml"), 64);
    ck_assert_str_eq(err, "gimbal version: 'job.yaml' is one argument too many\n");
    ck_assert_int_eq(RUN("train", "--local", "100", "-f", "job.yaml"), 64);
    ck_assert_ptr_nonnull(strstr(err, "--local '100' must be a whole number, 1 to 64"));
    ck_assert_int_eq(RUN("drill", "j-1", "stop", "--rank", "4294967296"), 64);
    ck_assert_ptr_nonnull(strstr(err, "--rank '4294967296' must be a whole number, 0 to 65535"));
    ck_assert_int_eq(RUN("logs", "j-1", "--rank", "4294967296"), 64);
    ck_assert_int_eq(RUN("cluster", "token", "user", "--ttl", "0s"), 64);
    ck_assert_ptr_nonnull(strstr(err, "--ttl '0s' must be more than zero, and at most 744h"));
    ck_assert_int_eq(RUN("cluster", "token", "user", "--name", ""), 64);
    ck_assert_ptr_nonnull(strstr(err, "--name is empty"));
    ck_assert_int_eq(RUN("-h"), 0);
    ck_assert_ptr_nonnull(strstr(out, "gimbal COMMAND"));
    ck_assert_int_eq(RUN("help"), 0);
    ck_assert_ptr_nonnull(strstr(out, "gimbal COMMAND"));
    ck_assert_int_eq(RUN("help", "submit"), 0);
    ck_assert_ptr_nonnull(strstr(out, "usage: gimbal submit"));
    ck_assert_int_eq(RUN("help", "plan", "show"), 0);
    ck_assert_ptr_nonnull(strstr(out, "usage: gimbal plan show"));
    ck_assert_int_eq(RUN("help", "sbumit"), 64);
    ck_assert_str_eq(err, "gimbal: unknown command 'sbumit'; did you mean 'submit'?\n");
}
END_TEST

START_TEST(a_wrong_job_file_is_named_with_its_place)
{
    write_job(2, "plan: {serch: exact}\n");
    ck_assert_int_eq(RUN("submit", "-f", in_folder("job.yaml")), 65);
    ck_assert_ptr_nonnull(strstr(err, "job.yaml:7:"));
    ck_assert_ptr_nonnull(strstr(err, "search"));
    ck_assert_int_eq(RUN("train", "--local", "2", "-f", "/proc/nonexistent.yaml"), 65);
    ck_assert_ptr_nonnull(strstr(err, "/proc/nonexistent.yaml"));
    write_file("job.yaml", "name: 7\n");
    ck_assert_int_eq(RUN("train", "--local", "2", "-f", in_folder("job.yaml")), 65);
    ck_assert_ptr_nonnull(strstr(err, "apiVersion"));
    ck_assert_int_eq(RUN("plan", "--local", "2", "-f", in_folder("job.yaml")), 65);
    write_job(2, "checkpoint: {dir: here}\n");
    ck_assert_int_eq(RUN("train", "--local", "2", "-f", in_folder("job.yaml")), 65);
    ck_assert_ptr_nonnull(strstr(err, "checkpoint.dir"));
}
END_TEST

START_TEST(without_a_coordinator_it_says_how_to_start_one)
{
    /* Port 1 of loopback: nobody listens there. */
    ck_assert_int_eq(RUN("jobs", "--address", "tcp://127.0.0.1:1"), 69);
    ck_assert_ptr_nonnull(strstr(err, "tcp://127.0.0.1:1"));
    ck_assert_ptr_nonnull(strstr(err, "gimbal-coordinator"));
    ck_assert_int_eq(RUN("jobs", "--address", "here"), 64);
}
END_TEST

START_TEST(a_job_that_is_not_there_has_no_events)
{
    struct cluster cluster;
    cluster_start(&cluster, NULL);
    setenv("GIMBAL_ADDRESS", cluster.address, 1);
    ck_assert_int_eq(RUN("events"), 0);
    ck_assert_str_eq(err, "");
    ck_assert_int_eq(RUN("events", "j-7"), 65);
    ck_assert_str_eq(err, "gimbal events: there is no job 'j-7'\n");
    ck_assert_int_eq(RUN("events", "j-7", "-w"), 65);
    cluster_stop(&cluster);
}
END_TEST

START_TEST(a_job_that_has_said_nothing_is_told_from_one_that_has)
{
    struct cluster cluster;
    cluster_start(&cluster, NULL);
    setenv("GIMBAL_ADDRESS", cluster.address, 1);
    write_job(2, "");
    ck_assert_int_eq(RUN("submit", "-f", in_folder("job.yaml")), 2);
    ck_assert_int_eq(RUN("logs", "j-1"), 0);
    ck_assert_str_eq(out, "");
    ck_assert_str_eq(err, "j-1 has no log lines\n");
    ck_assert_int_eq(RUN("logs", "j-1", "--rank", "1"), 0);
    ck_assert_str_eq(err, "j-1 has no log lines of rank 1\n");
    ck_assert_int_eq(RUN("logs", "j-1", "--quiet"), 0);
    ck_assert_str_eq(err, "");
    cluster_stop(&cluster);
}
END_TEST

START_TEST(what_was_answered_about_a_job_that_waits_is_in_the_file)
{
    struct cluster cluster;
    cluster_start(&cluster, NULL);
    setenv("GIMBAL_ADDRESS", cluster.address, 1);
    write_job(2, "");
    ck_assert_int_eq(RUN("submit", "-f", in_folder("job.yaml"), "-o", in_folder("plan.json")), 2);
    read_file("plan.json", out, sizeof out);
    json_t *accepted = object_out("Submission");
    ck_assert_str_eq(json_string_value(json_object_get(accepted, "job")), "j-1");
    json_decref(accepted);
    ck_assert_int_eq(RUN("submit", "-f", in_folder("job.yaml"), "-o", in_folder("plan.json"),
                         "--wait", "--timeout", "100ms"),
                     124);
    read_file("plan.json", out, sizeof out);
    ck_assert_ptr_nonnull(strstr(out, "j-2"));
    /* Nothing was answered: what is there stays. */
    ck_assert_int_eq(RUN("events", "j-7", "-o", in_folder("plan.json")), 65);
    read_file("plan.json", out, sizeof out);
    ck_assert_ptr_nonnull(strstr(out, "j-2"));
    cluster_stop(&cluster);
}
END_TEST

START_TEST(watching_prints_what_changes_until_its_time_is_over)
{
    struct cluster cluster;
    cluster_start(&cluster, NULL);
    setenv("GIMBAL_ADDRESS", cluster.address, 1);
    ck_assert_int_eq(RUN("nodes", "-w", "--timeout", "1500ms"), 124);
    ck_assert_str_eq(err, "gimbal nodes: gave up after 1.5 s\n");
    ck_assert_ptr_nonnull(strstr(out, "NODE"));
    ck_assert_ptr_null(strstr(strstr(out, "NODE") + 1, "NODE")); /* once, of two askings */
    ck_assert_int_eq(RUN("events", "-w", "--timeout", "100ms"), 124);
    ck_assert_str_eq(err, "gimbal events: gave up after 0.1 s\n");
    ck_assert_int_eq(RUN("drain", "node-x"), 65);
    ck_assert_str_eq(err, "gimbal drain: there is no node 'node-x'\n");
    cluster_stop(&cluster);
}
END_TEST

START_TEST(a_missing_executor_is_named)
{
    write_job(2, "");
    setenv("GIMBAL_EXECUTOR", "/proc/nonexistent/executor", 1);
    ck_assert_int_eq(RUN("train", "--local", "1", "-f", in_folder("job.yaml")), 78);
    ck_assert_ptr_nonnull(strstr(err, "GIMBAL_EXECUTOR=/proc/nonexistent/executor"));
}
END_TEST

START_TEST(a_device_that_nothing_has_is_answered_with_those_there_are)
{
    write_job(2, "");
    ck_assert_int_ne(RUN("train", "--local", "2", "-f", in_folder("job.yaml"), "--device", "foo"),
                     0);
    ck_assert_ptr_nonnull(strstr(err, "there is no device 'foo'; there are: plain, cpu, cuda"));
    ck_assert_int_eq(RUN("train", "--local", "2", "-f", in_folder("job.yaml"), "--device", "cpu",
                         "--checkpoint", "none"),
                     0);
}
END_TEST

START_TEST(a_plan_is_printed_and_can_be_trained)
{
    write_job(30, "");
    ck_assert_int_eq(RUN("plan", "--local", "2", "-f", in_folder("job.yaml"), "-o", "json"), 0);
    json_t *plan = object_out("Plan");
    ck_assert_int_eq(json_integer_value(json_object_get(plan, "global_batch")), 8);
    write_file("plan.json", out);
    ck_assert_int_eq(RUN("train", "--local", "2", "-f", in_folder("job.yaml"), "--plan",
                         in_folder("plan.json"), "--checkpoint", "none", "-o", "json"),
                     0);
    json_t *result = object_out("TrainResult");
    ck_assert_str_eq(json_string_value(json_object_get(result, "plan")),
                     json_string_value(json_object_get(plan, "id")));
    ck_assert_int_eq(json_integer_value(json_object_get(result, "steps")), 30);
    ck_assert_double_lt(json_real_value(json_object_get(result, "loss")), 5);
    ck_assert(json_is_real(json_object_get(result, "heldout_loss")));
    ck_assert(json_is_string(json_object_get(result, "sample")));
    ck_assert_ptr_nonnull(strstr(err, "bottles  step 30/30"));
    json_decref(plan);
    json_decref(result);
}
END_TEST

/* Without a coordinator, and without an executor: a saved plan is all that it takes. */
START_TEST(a_saved_plan_is_shown_and_so_is_the_program_of_each_rank)
{
    write_job(2, "devices: {min: 2}\n");
    ck_assert_int_eq(RUN("plan", "--local", "2", "-f", in_folder("job.yaml"), "-o", "json"), 0);
    json_t *plan = object_out("Plan");
    write_file("plan.json", out);
    setenv("GIMBAL_EXECUTOR", "/proc/nonexistent/executor", 1);
    ck_assert_int_eq(
        RUN("plan", "show", "-f", in_folder("job.yaml"), "--plan", in_folder("plan.json")), 0);
    ck_assert_ptr_nonnull(strstr(out, json_string_value(json_object_get(plan, "id"))));
    ck_assert_ptr_nonnull(strstr(out, "\nlayers.0..layers.1  ")); /* alike */
    ck_assert_int_eq(RUN("plan", "show", "-f", in_folder("job.yaml"), "--plan",
                         in_folder("plan.json"), "-o", "wide"),
                     0);
    ck_assert_ptr_nonnull(strstr(out, "\nlayers.1  "));
    ck_assert_int_eq(RUN("plan", "show", "-f", in_folder("job.yaml"), "--plan",
                         in_folder("plan.json"), "-o", "json"),
                     0);
    json_t *again = object_out("Plan");
    ck_assert(json_equal(again, plan));
    ck_assert_int_eq(RUN("plan", "show", "-f", in_folder("job.yaml"), "--plan",
                         in_folder("plan.json"), "--program", "--rank", "1"),
                     0);
    ck_assert_ptr_eq(strstr(out, "rank 1 of 2, stage "), out);
    ck_assert_ptr_nonnull(strstr(out, "\nupdate:\n"));
    ck_assert_int_eq(RUN("plan", "show", "-f", in_folder("job.yaml"), "--plan",
                         in_folder("plan.json"), "--program", "--rank", "2"),
                     64);
    ck_assert_ptr_nonnull(strstr(err, "its ranks are 0 to 1"));
    json_decref(plan);
    json_decref(again);
}
END_TEST

START_TEST(what_cannot_fit_has_no_plan)
{
    write_wide_job(128, 2, "plan: {memory: 1MiB}\n");
    ck_assert_int_eq(RUN("plan", "--local", "2", "-f", in_folder("job.yaml"), "-o", "json"), 3);
    ck_assert_str_eq(out, "");
    ck_assert_ptr_nonnull(strstr(err, "no plan fits"));
    write_job(2, "devices: {min: 3}\n");
    ck_assert_int_eq(RUN("plan", "--local", "2", "-f", in_folder("job.yaml")), 3);
    ck_assert_ptr_nonnull(strstr(err, "devices.min is 3, and there are 2 devices"));
}
END_TEST

START_TEST(a_plan_for_more_devices_is_refused)
{
    write_job(2, "devices: {min: 2}\n");
    ck_assert_int_eq(RUN("plan", "--local", "2", "-f", in_folder("job.yaml"), "-o", "json"), 0);
    write_file("plan.json", out);
    ck_assert_int_eq(
        RUN("plan", "--local", "1", "-f", in_folder("job.yaml"), "--plan", in_folder("plan.json")),
        73);
    ck_assert_ptr_nonnull(strstr(err, "plan.json"));
}
END_TEST

/* Read what comes until a line with these words; the rest is there for later. */
static void read_until(FILE *from, const char *words)
{
    char line[1024];
    do
        ck_assert_msg(fgets(line, sizeof line, from) != NULL, "it never said '%s'", words);
    while (!strstr(line, words));
}

/* Interrupt it and wait for its end; the last line it wrote is in out. */
static int interrupt(pid_t pid, FILE *from)
{
    int status;
    kill(pid, SIGINT);
    while (fgets(out, sizeof out, from))
        continue;
    fclose(from);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Start it with one of its streams, 1 or 2, as a pipe. */
static pid_t start_piped(int fd, const char *const *words, FILE **from)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = start_to(words, fd, ends[1]);
    close(ends[1]);
    *from = fdopen(ends[0], "r");
    return pid;
}
#define START_PIPED(fd, from, ...) start_piped(fd, (const char *const[]){__VA_ARGS__, NULL}, from)

START_TEST(an_interrupt_stops_the_training)
{
    FILE *from;
    write_job(1000000, "");
    pid_t pid = START_PIPED(1, &from, "train", "--local", "2", "-f", in_folder("job.yaml"),
                            "--checkpoint", "none", "-o", "jsonl");
    read_until(from, "\"kind\":\"Step\"");
    ck_assert_int_eq(interrupt(pid, from), 130);
    ck_assert_ptr_nonnull(strstr(out, "\"kind\":\"TrainResult\""));
}
END_TEST

/* The demo puts its folder into TMPDIR, ours, which has to be empty afterwards. */
START_TEST(the_demo_trains_and_leaves_nothing_behind)
{
    write_job(1, ""); /* for its text */
    setenv("TMPDIR", folder, 1);
    ck_assert_int_eq(
        RUN("demo", "--workers", "2", "--steps", "12", "--text", in_folder("text"), "-o", "json"),
        0);
    json_t *result = object_out("DemoResult"), *measured = json_object_get(result, "measured");
    ck_assert_int_eq(json_integer_value(json_object_get(result, "steps")), 12);
    ck_assert_double_lt(json_real_value(json_object_get(result, "loss")), 5);
    ck_assert_double_gt(json_real_value(json_object_get(measured, "step_time_s")), 0);
    ck_assert_int_gt(json_integer_value(json_object_get(measured, "resident_bytes_max")), 0);
    ck_assert(json_is_string(json_object_get(result, "sample")));
    ck_assert_ptr_nonnull(strstr(err, "no process, file or shared memory is left behind"));
    json_decref(result);
}
END_TEST

START_TEST(an_interrupt_ends_the_demo_without_a_trace)
{
    FILE *from;
    write_job(1, "");
    setenv("TMPDIR", folder, 1);
    pid_t pid = START_PIPED(2, &from, "demo", "--workers", "2", "--steps", "1000000", "--text",
                            in_folder("text"));
    read_until(from, "step 1/");
    ck_assert_int_eq(interrupt(pid, from), 130);
    ck_assert_ptr_nonnull(strstr(out, "no process, file or shared memory is left behind"));
}
END_TEST

START_TEST(the_demo_says_which_text_is_missing)
{
    ck_assert_int_eq(RUN("demo", "--text", "/proc/nonexistent/text"), 65);
    ck_assert_ptr_nonnull(strstr(err, "/proc/nonexistent/text"));
}
END_TEST

SUITE(gimbal)
{
    TCase *words = tcase_create("words"), *training = tcase_create("training"),
          *demo = tcase_create("demo");
    tcase_add_checked_fixture(words, make_folder, remove_folder);
    tcase_add_test(words, misspelt_commands_and_flags_are_usage);
    tcase_add_test(words, a_wrong_job_file_is_named_with_its_place);
    tcase_add_test(words, without_a_coordinator_it_says_how_to_start_one);
    tcase_add_test(words, a_job_that_is_not_there_has_no_events);
    tcase_add_test(words, a_job_that_has_said_nothing_is_told_from_one_that_has);
    tcase_add_test(words, what_was_answered_about_a_job_that_waits_is_in_the_file);
    tcase_add_test(words, watching_prints_what_changes_until_its_time_is_over);
    tcase_add_test(words, a_missing_executor_is_named);
    tcase_add_checked_fixture(training, make_folder, remove_folder);
    tcase_set_timeout(training, 120);
    tcase_add_test(training, a_device_that_nothing_has_is_answered_with_those_there_are);
    tcase_add_test(training, a_plan_is_printed_and_can_be_trained);
    tcase_add_test(training, a_saved_plan_is_shown_and_so_is_the_program_of_each_rank);
    tcase_add_test(training, what_cannot_fit_has_no_plan);
    tcase_add_test(training, a_plan_for_more_devices_is_refused);
    tcase_add_test(training, an_interrupt_stops_the_training);
    tcase_add_checked_fixture(demo, make_folder, remove_folder);
    tcase_set_timeout(demo, 180);
    if (HAVE_GLOO) {
        tcase_add_test(demo, the_demo_trains_and_leaves_nothing_behind);
        tcase_add_test(demo, an_interrupt_ends_the_demo_without_a_trace);
    } else {
        suite_skip("demo", "this build has no Gloo, by which its ranks would meet");
    }
    tcase_add_test(demo, the_demo_says_which_text_is_missing);
    return suite_run("gimbal", words, training, demo, NULL);
}
