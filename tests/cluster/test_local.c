/* test_local.c - a training without a cluster saves, is interrupted, and goes on as if it had not
 * been. */
#include "common/base/clock.h"
#include "common/base/memory.h"
#include "tests/cluster/command.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STEPS 60
#define STEPS_TEXT "60"

static char folder[64], job_path[96], plan_path[96], checkpoints[96];
static char *plan; /* of two ranks, as JSON: every run takes it */
static struct command command;

static void setup(void)
{
    strcpy(folder, "/tmp/gimbal-local-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(job_path, sizeof job_path, "%s/job.yaml", folder);
    snprintf(plan_path, sizeof plan_path, "%s/plan.json", folder);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", folder);
    setenv("GIMBAL_EXECUTOR", EXECUTOR, 1);
    ck_assert_int_eq(chdir(folder), 0); /* runs that name no folder are saved here */
}

static void teardown(void)
{
    char *remove = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static int run(const char *const *words)
{
    command_start(&command, words);
    return command_finish(&command);
}
#define RUN(...) run((const char *const[]){GIMBAL, __VA_ARGS__, NULL})
#define TRAIN                                                                                      \
    "train", "--local", "2", "-f", job_path, "--plan", plan_path, "--checkpoint", checkpoints

static void write_job(int hidden, const char *rate, const char *more)
{
    char *text = xasprintf("apiVersion: gimbal/v1\nname: bottles\n"
                           "model: {family: gpt, layers: 2, hidden: %d, heads: 2, seq: 16}\n"
                           "data: {text: ['%s/text']}\n"
                           "train: {steps: " STEPS_TEXT ", global_batch: 4, lr: %s}\n"
                           "devices: {min: 2}\n"
                           "%s",
                           hidden, folder, rate, more);
    char *words = xasprintf("%s/text", folder);
    write_file(job_path, text);
    FILE *file = fopen(words, "we");
    for (int i = 0; i < 400; i++)
        fprintf(file, "%d bottles of beer on the wall\n", i);
    ck_assert_int_eq(fclose(file), 0);
    free(words);
    free(text);
}

/* Once for all tests: to plan is to measure the machine. */
static void make_plan(void)
{
    setup();
    write_job(32, "3.0e-3", "");
    ck_assert_int_eq(RUN("plan", "--local", "2", "-f", job_path, "-o", "json"), 0);
    plan = xstrdup(command.out);
    teardown();
}

static void forget_plan(void)
{
    free(plan);
}

static void prepare_job(int hidden, const char *rate, const char *more)
{
    write_job(hidden, rate, more);
    write_file(plan_path, plan);
}

static void prepare(int hidden)
{
    prepare_job(hidden, "3.0e-3", "");
}

/* Of the result that the last run printed. */
static double final_loss(void)
{
    json_t *result = json_loads(command.out, 0, NULL);
    ck_assert_msg(result != NULL, "%s%s", command.out, command.err);
    ck_assert_int_eq(json_integer_value(json_object_get(result, "steps")), STEPS);
    double loss = json_real_value(json_object_get(result, "loss"));
    json_decref(result);
    return loss;
}

/* Train until some step is done, then stop with a checkpoint: of which step. */
static int interrupt(const char *const *words)
{
    int step = 0;
    command_start(&command, words);
    ck_assert(command_await(&command, "\"kind\":\"Step\""));
    ck_assert_int_eq(kill(command.pid, SIGTERM), 0);
    ck_assert_int_eq(command_finish(&command), 128 + SIGTERM);
    const char *said = strstr(command.err, "checkpoint of step ");
    ck_assert_msg(said && sscanf(said, "checkpoint of step %d", &step) == 1, "%s", command.err);
    ck_assert_int_gt(step, 0);
    ck_assert_int_lt(step, STEPS);
    return step;
}

/* Spoil the checkpoint of this step and epoch. */
static void spoil(int step, int epoch)
{
    char *path = xasprintf("%s/bottles-local/step-%d.epoch-%d/rank-00000.safetensors", checkpoints,
                           step, epoch);
    ck_assert_int_eq(truncate(path, 100), 0);
    free(path);
}

START_TEST(an_interrupted_training_goes_on_as_if_it_had_not_been)
{
    prepare(32);
    ck_assert_int_eq(
        RUN("train", "--local", "2", "-f", job_path, "--plan", plan_path, "-o", "json"), 0);
    double loss = final_loss();
    interrupt((const char *const[]){GIMBAL, TRAIN, "-o", "jsonl", NULL});
    ck_assert_int_eq(RUN(TRAIN), 65);
    ck_assert_msg(strstr(command.err, "continue from the newest with --resume"), "%s", command.err);
    interrupt((const char *const[]){GIMBAL, TRAIN, "--resume", "-o", "jsonl", NULL});
    ck_assert_int_eq(RUN(TRAIN, "--resume", "-o", "json"), 0);
    ck_assert_msg(final_loss() == loss, "the loss is %.17g, not %.17g", final_loss(), loss);
}
END_TEST

/* Its process is asked itself, past the command. */
START_TEST(an_executor_that_is_asked_by_a_signal_saves)
{
    prepare(32);
    command_start(&command, (const char *const[]){GIMBAL, TRAIN, "-o", "jsonl", NULL});
    ck_assert(command_await(&command, "\"kind\":\"Step\""));
    ck_assert_int_eq(kill(command_child(command.pid), SIGTERM), 0);
    ck_assert_int_eq(command_finish(&command), 1);
    ck_assert_msg(strstr(command.err, "SIGTERM: it was asked to stop, and did behind step ") &&
                      strstr(command.err, ", which is saved"),
                  "%s", command.err);
    ck_assert_int_eq(RUN(TRAIN, "--resume", "-o", "json"), 0);
}
END_TEST

/* One that answers nothing is not waited for when a second signal comes. */
START_TEST(a_second_signal_ends_it_at_once)
{
    prepare(32);
    command_start(&command, (const char *const[]){GIMBAL, TRAIN, "-o", "jsonl", NULL});
    ck_assert(command_await(&command, "\"kind\":\"Step\""));
    ck_assert_int_eq(kill(command_child(command.pid), SIGSTOP), 0);
    double begin = clock_s();
    ck_assert_int_eq(kill(command.pid, SIGTERM), 0);
    ck_assert_int_eq(kill(command.pid, SIGINT), 0); /* the same one would be no second */
    ck_assert_int_gt(command_finish(&command), 128);
    ck_assert_double_lt(clock_s() - begin, 8);
}
END_TEST

/* No file of the executor may grow beyond this any more. */
static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};
    ck_assert_int_eq(prlimit(command_child(command.pid), RLIMIT_FSIZE, &limit, NULL), 0);
}

static void train_on_full_disk(const char *more)
{
    prepare_job(32, "3.0e-3", more);
    command_start(&command, (const char *const[]){GIMBAL, TRAIN, "-o", "jsonl", NULL});
    ck_assert(command_await(&command, "\"kind\":\"Step\""));
    limit_files(4096);
    ck_assert(command_await(&command, "\"step\":" STEPS_TEXT ","));
}

START_TEST(a_last_step_that_cannot_be_saved_waits_in_memory)
{
    train_on_full_disk("");
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(command_finish(&command), 0);
    ck_assert_int_eq(RUN(TRAIN, "--resume", "-o", "json"), 0);
}
END_TEST

/* After a while, or because somebody has had enough. */
START_TEST(one_that_cannot_be_saved_is_no_success)
{
    char patience[160];
    snprintf(patience, sizeof patience, "checkpoint: {dir: '%s', patience: %s}\n", checkpoints,
             _i == 0 ? "1s" : "10m");
    train_on_full_disk(patience);
    if (_i == 1)
        ck_assert_int_eq(kill(command.pid, SIGINT), 0);
    ck_assert_int_eq(command_finish(&command), 74);
    ck_assert_msg(strstr(command.err, "the last step, " STEPS_TEXT ", could not be saved") &&
                      strstr(command.err, "File too large"),
                  "%s", command.err);
}
END_TEST

START_TEST(a_training_that_is_done_says_so)
{
    prepare(32);
    ck_assert_int_eq(RUN(TRAIN), 0);
    ck_assert_int_eq(RUN(TRAIN, "--resume"), 0);
    ck_assert_str_eq(command.out, "all " STEPS_TEXT " steps are already done\n");
    ck_assert_int_eq(RUN(TRAIN, "--resume", "-o", "json"), 0);
    json_t *result = json_loads(command.out, 0, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(result, "steps")), STEPS);
    ck_assert(json_is_null(json_object_get(result, "loss")));
    ck_assert(json_is_null(json_object_get(result, "measured")));
    json_decref(result);
}
END_TEST

/* By the command, and in the executor's log not again. */
START_TEST(data_that_are_not_there_are_told_once)
{
    prepare(32);
    char *words = xasprintf("%s/text", folder);
    ck_assert_int_eq(unlink(words), 0);
    ck_assert_int_eq(RUN(TRAIN), 65);
    char *said = strstr(command.err, words);
    ck_assert_msg(said && !strstr(said + 1, words), "%s", command.err);
    free(words);
}
END_TEST

/* Before anything is started: an executor's failure would be 1, whatever it is. */
START_TEST(a_folder_that_cannot_be_made_is_a_wrong_name)
{
    prepare(32);
    char *under_file = xasprintf("%s/text/checkpoints", folder);
    char *too_long = xasprintf("%s/%0300d", folder, 0);
    ck_assert_int_eq(RUN("train", "--local", "2", "-f", job_path, "--plan", plan_path, "-q",
                         "--checkpoint", under_file),
                     65);
    ck_assert_msg(strstr(command.err, "--checkpoint: '") &&
                      strstr(command.err, "text' is no folder"),
                  "%s", command.err);
    ck_assert_int_eq(RUN("train", "--local", "2", "-f", job_path, "--plan", plan_path, "-q",
                         "--checkpoint", too_long),
                     65);
    ck_assert_msg(strstr(command.err, "File name too long") != NULL, "%s", command.err);
    char *more = xasprintf("checkpoint: {dir: '%s'}\n", under_file);
    prepare_job(32, "3.0e-3", more);
    ck_assert_int_eq(RUN("train", "--local", "2", "-f", job_path, "--plan", plan_path, "-q"), 65);
    ck_assert_msg(strstr(command.err, "checkpoint.dir: '") != NULL, "%s", command.err);
    ck_assert_int_eq(
        RUN("train", "--local", "2", "-f", job_path, "--plan", plan_path, "-q", "--dry-run"), 0);
    free(more);
    more = xasprintf("%s.json", under_file);
    ck_assert_int_eq(RUN("train", "--local", "2", "-f", job_path, "-o", more), 65);
    ck_assert_msg(strstr(command.err, "Not a directory") != NULL, "%s", command.err);
    free(more);
    free(too_long);
    free(under_file);
}
END_TEST

START_TEST(a_training_that_diverges_has_failed)
{
    prepare_job(32, "100", "elastic: {max_skipped: 3}\n");
    ck_assert_int_eq(RUN(TRAIN), 1);
    ck_assert_msg(strstr(command.err, "had a finite loss and gradient (elastic.max_skipped)"), "%s",
                  command.err);
    prepare_job(32, "100", "elastic: {max_skipped: 0}\n");
    ck_assert_msg(RUN(TRAIN) == 0, "%s", command.err);
}
END_TEST

START_TEST(a_damaged_checkpoint_is_passed_over_for_the_one_before)
{
    prepare(32);
    int first = interrupt((const char *const[]){GIMBAL, TRAIN, "-o", "jsonl", NULL});
    int second = interrupt((const char *const[]){GIMBAL, TRAIN, "--resume", "-o", "jsonl", NULL});
    ck_assert_int_gt(second, first);
    spoil(second, 2);
    command_start(&command,
                  (const char *const[]){GIMBAL, TRAIN, "--resume", "-q", "-o", "jsonl", NULL});
    char words[64];
    snprintf(words, sizeof words, "\"step\":%d,", first + 1);
    ck_assert_msg(command_await(&command, words), "%s", command.out);
    ck_assert_int_eq(kill(command.pid, SIGTERM), 0);
    ck_assert_int_eq(command_finish(&command), 128 + SIGTERM);
    ck_assert_msg(strstr(command.err, "warning: training cannot continue from the checkpoint"),
                  "%s", command.err);
}
END_TEST

/* What the executor logs is for those who ask for it; what went wrong is for everybody. */
START_TEST(a_person_reads_sentences)
{
    prepare(32);
    ck_assert_int_eq(RUN(TRAIN), 0);
    ck_assert_ptr_nonnull(strstr(command.err, "checkpoint of step " STEPS_TEXT));
    ck_assert_msg(!strstr(command.err, "rank 0 keeps"), "%s", command.err);
    char *clear = xasprintf("rm -rf '%s'", checkpoints);
    ck_assert_int_eq(system(clear), 0);
    free(clear);
    ck_assert_int_eq(RUN(TRAIN, "-v"), 0);
    ck_assert_msg(strstr(command.err, "\nrank 0 keeps ") != NULL, "%s", command.err);
    ck_assert_ptr_null(strstr(command.err, "level="));
}
END_TEST

START_TEST(without_an_undamaged_checkpoint_nothing_begins)
{
    prepare(32);
    ck_assert_int_eq(RUN(TRAIN, "--resume"), 65);
    ck_assert_msg(strstr(command.err, "lists no checkpoint to continue from"), "%s", command.err);
    ck_assert_int_lt(access(checkpoints, F_OK), 0);
    int step = interrupt((const char *const[]){GIMBAL, TRAIN, "-o", "jsonl", NULL});
    spoil(step, 1);
    ck_assert_int_eq(RUN(TRAIN, "--resume"), 1);
    ck_assert_msg(strstr(command.err, "no undamaged checkpoint is left"), "%s", command.err);
}
END_TEST

/* Its files stay as they are, and its own model goes on from them. */
START_TEST(a_checkpoint_of_another_model_is_refused)
{
    prepare(32);
    int step = interrupt((const char *const[]){GIMBAL, TRAIN, "-o", "jsonl", NULL});
    prepare(64);
    ck_assert_int_eq(RUN(TRAIN, "--resume"), 65);
    ck_assert_msg(strstr(command.err, "another model: model.hidden is 64 and was 32"), "%s",
                  command.err);
    char *path = xasprintf("%s/bottles-local/step-%d.epoch-1", checkpoints, step);
    ck_assert_int_eq(RUN("checkpoint", "verify", path), 0);
    free(path);
    prepare(32);
    ck_assert_int_eq(RUN(TRAIN, "--resume", "-o", "json"), 0);
}
END_TEST

static bool is_there(const char *name)
{
    char *path = xasprintf("%s/%s", folder, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* Nobody loses a model for not having named a folder. */
START_TEST(a_run_that_names_no_folder_has_one_of_its_own)
{
    prepare(32);
    ck_assert_int_eq(RUN("train", "--local", "2", "-f", job_path, "--plan", plan_path, "--resume"),
                     65);
    ck_assert_msg(strstr(command.err, "has no run of bottles to continue"), "%s", command.err);
    ck_assert_int_eq(
        RUN("train", "--local", "2", "-f", job_path, "--plan", plan_path, "-o", "json"), 0);
    double loss = final_loss();
    ck_assert_msg(is_there("runs/bottles-1/step-" STEPS_TEXT ".epoch-1/manifest.json"), "%s",
                  command.err);
    int step = interrupt((const char *const[]){GIMBAL, "train", "--local", "2", "-f", job_path,
                                               "--plan", plan_path, "-o", "jsonl", NULL});
    ck_assert(is_there("runs/bottles-2"));
    ck_assert_int_eq(
        RUN("train", "--local", "2", "-f", job_path, "--plan", plan_path, "--resume", "-o", "json"),
        0);
    ck_assert_msg(final_loss() == loss, "the loss is %.17g, not %.17g", final_loss(), loss);
    ck_assert_int_lt(step, STEPS);
    ck_assert(is_there("runs/bottles-2/step-" STEPS_TEXT ".epoch-2/manifest.json"));
    ck_assert(!is_there("runs/bottles-3"));
    ck_assert_int_eq(RUN("generate", "runs/bottles-2", "-n", "5"), 0);
}
END_TEST

START_TEST(a_run_that_saved_nothing_leaves_nothing)
{
    prepare(32);
    ck_assert_int_eq(
        RUN("train", "--local", "2", "-f", job_path, "--plan", plan_path, "--checkpoint", "none"),
        0);
    ck_assert_int_eq(unlink("text"), 0);
    ck_assert_int_eq(RUN("train", "--local", "2", "-f", job_path, "--plan", plan_path), 65);
    ck_assert(!is_there("runs"));
}
END_TEST

/* ---- from a checkpoint of another training ---- */

#define FROM(dir, ...)                                                                             \
    RUN("train", "--local", "2", "-f", job_path, "--plan", plan_path, "--checkpoint", dir,         \
        __VA_ARGS__)

/* A job that saves after every 30 of its 60 steps. */
static void prepare_halves(const char *rate)
{
    char *more = xasprintf("checkpoint: {dir: '%s/unused', every: 30}\n", folder);
    prepare_job(32, rate, more);
    free(more);
}

/* Train it, into the folder of checkpoints; the result is what the command printed. */
static char *save_both_halves(void)
{
    prepare_halves("3.0e-3");
    ck_assert_msg(RUN(TRAIN, "-o", "json") == 0, "%s", command.err);
    return xasprintf("%s/bottles-local/step-30.epoch-1", checkpoints);
}

/* The loss of a step that the last run printed. */
static double loss_of(int step)
{
    char *mark = xasprintf("\"step\":%d,\"loss\":", step);
    const char *said = strstr(command.out, mark);
    ck_assert_msg(said != NULL, "no %s in %s%s", mark, command.out, command.err);
    double loss = strtod(said + strlen(mark), NULL);
    free(mark);
    return loss;
}

START_TEST(a_training_goes_on_from_any_checkpoint_as_if_it_had_not_stopped)
{
    char *saved = save_both_halves(), *other = xasprintf("%s/other", folder);
    double loss = final_loss();
    ck_assert_msg(FROM(other, "--from", saved, "-o", "json") == 0, "%s", command.err);
    ck_assert_msg(final_loss() == loss, "the loss is %.17g, not %.17g", final_loss(), loss);
    ck_assert_msg(strstr(command.err, "training goes on after step 30 of '"), "%s", command.err);
    ck_assert_msg(!strstr(command.err, "not as in the checkpoint"), "%s", command.err);

    /* The job file is in the checkpoint, too; under another plan sums have another order. */
    ck_assert_msg(RUN("train", "--local", "1", "--from", saved, "--checkpoint", folder, "--plan",
                      plan_path, "-o", "json") != 0,
                  "a plan of two ranks is none for one");
    ck_assert_msg(RUN("train", "--local", "2", "--from", saved, "--checkpoint", folder, "--plan",
                      plan_path, "-o", "json") == 0,
                  "%s", command.err);
    ck_assert_msg(final_loss() == loss, "the loss is %.17g, not %.17g", final_loss(), loss);
    free(other);
    free(saved);
}
END_TEST

START_TEST(what_is_not_as_in_the_checkpoint_is_followed_and_told)
{
    char *saved = save_both_halves(), *other = xasprintf("%s/other", folder);
    double loss = final_loss();
    prepare_halves("1.0e-3");
    ck_assert_msg(FROM(other, "--from", saved, "-o", "json") == 0, "%s", command.err);
    double slower = final_loss();
    ck_assert_msg(slower != loss, "another rate has the same loss, %.17g", loss);
    ck_assert_msg(
        strstr(command.err, "warning: not as in the checkpoint: train.lr is 0.001 and was 0.003\n"),
        "%s", command.err);
    /* other contents of the same path are told of, too */
    char *words = xasprintf("%s/text", folder), *third = xasprintf("%s/third", folder);
    char *other_words = xasprintf("not as in the checkpoint: the data: file 1, %s, has other "
                                  "contents\n",
                                  words);
    ck_assert_ptr_null(strstr(command.err, other_words));
    char *kept =
        xasprintf("cp '%s' '%s.kept' && tr e o < '%s.kept' > '%s'", words, words, words, words);
    ck_assert_int_eq(system(kept), 0);
    ck_assert_msg(FROM(third, "--from", saved, "-o", "json") == 0, "%s", command.err);
    ck_assert_msg(strstr(command.err, other_words), "%s", command.err);
    char *back = xasprintf("mv '%s.kept' '%s'", words, words);
    ck_assert_int_eq(system(back), 0);
    free(back);
    free(kept);
    free(other_words);
    free(third);
    free(words);
    /* resuming is the same, with the same words */
    char *list = xasprintf("%s/bottles-local/listed", checkpoints);
    write_file(list, "epoch 1\nstep-30.epoch-1\n");
    ck_assert_msg(RUN(TRAIN, "--resume", "-o", "json") == 0, "%s", command.err);
    ck_assert_msg(final_loss() == slower, "the loss is %.17g, not %.17g", final_loss(), slower);
    ck_assert_msg(strstr(command.err, "train.lr is 0.001 and was 0.003"), "%s", command.err);
    free(list);
    free(other);
    free(saved);
}
END_TEST

/* Weights hardly move at this rate, so a step of twice the samples has the mean of the losses of
 * the two steps that have its halves. */
START_TEST(another_batch_goes_on_at_the_same_sample)
{
    char *saved = save_both_halves(), *first = xasprintf("%s/first", folder),
         *second = xasprintf("%s/second", folder);
    prepare_job(32, "1.0e-12", "");
    ck_assert_msg(FROM(first, "--from", saved, "-o", "jsonl") == 0, "%s", command.err);
    double half = (loss_of(31) + loss_of(32)) / 2, later = (loss_of(59) + loss_of(60)) / 2;
    char *edit = xasprintf("sed -i 's/global_batch: 4/global_batch: 8/' '%s'", job_path);
    ck_assert_int_eq(system(edit), 0);
    ck_assert_msg(RUN("train", "--local", "2", "-f", job_path, "--checkpoint", second, "--from",
                      saved, "-o", "jsonl") == 0,
                  "%s", command.err);
    ck_assert_double_eq_tol(loss_of(31), half, 1e-5);
    ck_assert_double_eq_tol(loss_of(45), later, 1e-5);
    free(edit);
    free(second);
    free(first);
    free(saved);
}
END_TEST

START_TEST(only_the_weights_may_be_taken)
{
    char *saved = save_both_halves(), *other = xasprintf("%s/other", folder);
    prepare_job(32, "1.0e-12", "");
    ck_assert_msg(FROM(other, "--from", saved, "--weights-only", "-o", "jsonl") == 0, "%s",
                  command.err);
    double trained = loss_of(1);
    ck_assert_msg(strstr(command.err, "training begins with the weights in '"), "%s", command.err);
    char *anew = xasprintf("%s/anew", folder);
    ck_assert_msg(FROM(anew, "-o", "jsonl") == 0, "%s", command.err);
    ck_assert_double_lt(trained, loss_of(1) - 0.5);
    free(anew);
    free(other);
    free(saved);
}
END_TEST

START_TEST(what_cannot_be_gone_on_from_is_told_before_anything_is_started)
{
    char *saved = save_both_halves(), *other = xasprintf("%s/other", folder);
    char *last = xasprintf("%s/bottles-local/step-60.epoch-1", checkpoints);
    ck_assert_int_eq(FROM(other, "--from", last), 65);
    ck_assert_msg(strstr(command.err, "nothing is left to train"), "%s", command.err);
    ck_assert_int_eq(FROM(other, "--from", folder), 65);
    ck_assert_msg(strstr(command.err, "has no manifest.json"), "%s", command.err);
    ck_assert_int_eq(FROM(other, "--from", saved, "--resume"), 64);
    ck_assert_int_eq(FROM(other, "--weights-only"), 64);
    prepare(64);
    ck_assert_int_eq(FROM(other, "--from", saved), 65);
    ck_assert_msg(strstr(command.err, "another model: model.hidden is 64 and was 32"), "%s",
                  command.err);
    ck_assert_int_lt(access(other, F_OK), 0);
    free(last);
    free(other);
    free(saved);
}
END_TEST

SUITE(local)
{
    TCase *tcase = tcase_create("local");
    tcase_add_unchecked_fixture(tcase, make_plan, forget_plan);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, an_interrupted_training_goes_on_as_if_it_had_not_been);
    tcase_add_test(tcase, an_executor_that_is_asked_by_a_signal_saves);
    tcase_add_test(tcase, a_second_signal_ends_it_at_once);
    tcase_add_test(tcase, a_last_step_that_cannot_be_saved_waits_in_memory);
    tcase_add_loop_test(tcase, one_that_cannot_be_saved_is_no_success, 0, 2);
    tcase_add_test(tcase, a_training_that_is_done_says_so);
    tcase_add_test(tcase, data_that_are_not_there_are_told_once);
    tcase_add_test(tcase, a_folder_that_cannot_be_made_is_a_wrong_name);
    tcase_add_test(tcase, a_training_that_diverges_has_failed);
    tcase_add_test(tcase, a_damaged_checkpoint_is_passed_over_for_the_one_before);
    tcase_add_test(tcase, a_person_reads_sentences);
    tcase_add_test(tcase, without_an_undamaged_checkpoint_nothing_begins);
    tcase_add_test(tcase, a_checkpoint_of_another_model_is_refused);
    tcase_add_test(tcase, a_run_that_names_no_folder_has_one_of_its_own);
    tcase_add_test(tcase, a_run_that_saved_nothing_leaves_nothing);
    tcase_add_test(tcase, a_training_goes_on_from_any_checkpoint_as_if_it_had_not_stopped);
    tcase_add_test(tcase, what_is_not_as_in_the_checkpoint_is_followed_and_told);
    tcase_add_test(tcase, another_batch_goes_on_at_the_same_sample);
    tcase_add_test(tcase, only_the_weights_may_be_taken);
    tcase_add_test(tcase, what_cannot_be_gone_on_from_is_told_before_anything_is_started);
    return suite_run("local", tcase, NULL);
}
