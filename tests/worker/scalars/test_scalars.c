/* test_scalars.c - files for other programs: framed as TensorBoard wants them, and without a step
 * that is there twice. */
#include "worker/scalars/scalars.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "proto/tensorboard.pb-c.h"
#include "tests/support/suite.h"
#include "worker/scalars/events.h"

static char folder[] = "/tmp/gimbal-scalars-XXXXXX";
static char board[64], lines[64];
static struct job_log log_section;

static void setup(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(board, sizeof board, "%s/board", folder);
    snprintf(lines, sizeof lines, "%s/lines", folder);
    log_section = (struct job_log){board, lines};
}

static void teardown(void)
{
    char *command = xasprintf("rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

START_TEST(checksums_are_those_of_the_papers)
{
    unsigned char zeros[32] = {0}, ones[32], rising[32];
    memset(ones, 0xff, sizeof ones);
    for (unsigned i = 0; i < sizeof rising; i++)
        rising[i] = (unsigned char)i;
    /* RFC 3720, B.4 */
    ck_assert_uint_eq(events_crc(zeros, sizeof zeros), 0x8a9136aau);
    ck_assert_uint_eq(events_crc(ones, sizeof ones), 0x62a8ab43u);
    ck_assert_uint_eq(events_crc(rising, sizeof rising), 0x46dd794eu);
    ck_assert_uint_eq(events_crc("123456789", 9), 0xe3069283u);
    /* The head of an event file of TensorFlow: a record of 24 bytes. */
    ck_assert_uint_eq(events_masked_crc("\x18\0\0\0\0\0\0\0", 8), 0x224b7fa3u);
}
END_TEST

/* ---- reading event files ---- */

#define EVENTS_MAX 2048
static Tensorboard__Event *records[EVENTS_MAX];
static size_t record_count;

static uint64_t little(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static void read_file(const char *path)
{
    char *text;
    size_t size;
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(file_read_all(fileno(file), 1 << 24, &text, &size), 0);
    fclose(file);
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t at = 0; at < size;) {
        size_t length = (size_t)little(bytes + at, 8);
        ck_assert_uint_le(at + 16 + length, size);
        ck_assert_uint_eq(little(bytes + at + 8, 4), events_masked_crc(bytes + at, 8));
        ck_assert_uint_eq(little(bytes + at + 12 + length, 4),
                          events_masked_crc(bytes + at + 12, length));
        ck_assert_uint_lt(record_count, EVENTS_MAX);
        records[record_count] = tensorboard__event__unpack(NULL, length, bytes + at + 12);
        ck_assert_ptr_nonnull(records[record_count]);
        record_count++;
        at += 16 + length;
    }
    free(text);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void forget_read(void)
{
    for (size_t i = 0; i < record_count; i++)
        tensorboard__event__free_unpacked(records[i], NULL);
    record_count = 0;
}

/* All event files of the run, in TensorBoard's order. */
static void read_run(const char *run)
{
    char *names[32], *command = xasprintf("ls %s/%s", board, run), name[128];
    size_t count = 0;
    FILE *list = popen(command, "re");
    while (fgets(name, sizeof name, list)) {
        name[strcspn(name, "\n")] = '\0';
        names[count++] = xasprintf("%s/%s/%s", board, run, name);
    }
    pclose(list);
    qsort(names, count, sizeof *names, compare_names);
    forget_read();
    for (size_t i = 0; i < count; i++) {
        read_file(names[i]);
        free(names[i]);
    }
    free(command);
}

/* The value of a tag at a step, as TensorBoard has it: a session's start drops what is of its step
 * and later ones. *times: how often it is there. */
static double shown(const char *tag, uint64_t step, size_t *times)
{
    double value = NAN;
    *times = 0;
    for (size_t i = 0; i < record_count; i++) {
        const Tensorboard__Event *event = records[i];
        if (event->session_log && event->what_case == TENSORBOARD__EVENT__WHAT_SESSION_LOG &&
            (uint64_t)event->step <= step) {
            *times = 0;
            value = NAN;
        }
        if (event->what_case != TENSORBOARD__EVENT__WHAT_SUMMARY || (uint64_t)event->step != step)
            continue;
        for (size_t k = 0; k < event->summary->n_value; k++)
            if (strcmp(event->summary->value[k]->tag, tag) == 0) {
                value = (double)event->summary->value[k]->simple_value;
                (*times)++;
            }
    }
    return value;
}

/* ---- writing ---- */

static struct scalars *begin(const char *job, uint64_t epoch, uint64_t step)
{
    const struct scalars_config config = {.log = &log_section,
                                          .name = "riddles",
                                          .job = job,
                                          .epoch = epoch,
                                          .plan = "p-1, dp2 on 2 devices",
                                          .predicted_s = 0.25,
                                          .tokens = 1000,
                                          .optimizer = {.rate = 1, .warmup = 4, .steps = 100}};
    struct scalars *scalars = scalars_create(&config);
    scalars_begin(scalars, step, "memory");
    return scalars;
}

static void steps(struct scalars *scalars, uint64_t from, uint64_t to, double loss)
{
    for (uint64_t step = from; step <= to; step++)
        scalars_step(scalars, step, loss + (double)step, 0.5, 0.5);
}

START_TEST(event_files_have_every_figure)
{
    size_t times;
    struct scalars *scalars = begin("j-7", 1, 0);
    steps(scalars, 1, 10, 0);
    scalars_step(scalars, 11, NAN, INFINITY, 0.5);
    scalars_evaluation(scalars, 10, 3.5);
    scalars_sample(scalars, 11, "a\xff", 2);
    scalars_destroy(scalars);
    read_run("riddles-j-7");
    ck_assert_str_eq(records[0]->file_version, "brain.Event:2");
    ck_assert_int_eq(records[1]->session_log->status, TENSORBOARD__SESSION_LOG__STATUS__START);
    ck_assert_int_eq(records[1]->step, 1);
    ck_assert_str_eq(records[2]->summary->value[0]->tag, "plan");
    ck_assert_str_eq(records[2]->summary->value[0]->metadata->plugin_data->plugin_name, "text");
    ck_assert_double_eq(shown("loss", 10, &times), 10);
    ck_assert_double_eq(shown("held_out_loss", 10, &times), 3.5);
    ck_assert_double_eq(shown("gradient_norm", 3, &times), 0.5);
    ck_assert_double_eq(shown("lr", 2, &times), 0.5);
    ck_assert_double_eq(shown("tokens_per_s", 3, &times), 2000);
    ck_assert_double_eq(shown("step_time_s/measured", 3, &times), 0.5);
    ck_assert_double_eq(shown("step_time_s/predicted", 3, &times), 0.25);
    ck_assert(isnan(shown("loss", 11, &times)) && times == 0);
    ck_assert(isinf(shown("gradient_norm", 11, &times)));
    const Tensorboard__Event *last = records[record_count - 1];
    ck_assert_uint_eq(last->summary->value[0]->tensor->string_val[0].len, 2);
    ck_assert_mem_eq(last->summary->value[0]->tensor->string_val[0].data, "a?", 2);
    forget_read();
}
END_TEST

START_TEST(a_training_that_goes_back_shows_each_step_once)
{
    size_t times;
    struct scalars *scalars = begin("j-7", 1, 0);
    steps(scalars, 1, 100, 0);
    scalars_destroy(scalars);
    scalars = begin("j-7", 2, 60); /* in the same second */
    steps(scalars, 61, 80, 1000);
    scalars_destroy(scalars);
    scalars = begin("j-7", 3, 79);
    steps(scalars, 80, 90, 2000);
    scalars_destroy(scalars);
    read_run("riddles-j-7");
    for (uint64_t step = 1; step <= 100; step++) {
        double value = shown("loss", step, &times);
        ck_assert_uint_eq(times, step <= 90);
        if (step <= 90)
            ck_assert_double_eq(value, (double)(step + (step > 79 ? 2000 : step > 60 ? 1000 : 0)));
    }
    forget_read();
}
END_TEST

/* The steps of the lines, as in "1 2 p2 3 e3 ": p for the text of a plan, e for an evaluation. */
static const char *steps_of(const char *job)
{
    static char text[4096];
    char *content;
    struct error err;
    text[0] = '\0';
    ck_assert_int_eq(file_read(lines, &content, &err), 0);
    char *rest = content;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        json_t *object = json_loads(line, 0, NULL);
        ck_assert_msg(object != NULL, "'%s'", line);
        size_t used = strlen(text);
        if (strcmp(json_string_value(json_object_get(object, "job")), job) == 0)
            snprintf(text + used, sizeof text - used, "%s%d ",
                     json_object_get(object, "plan")            ? "p"
                     : json_object_get(object, "held_out_loss") ? "e"
                                                                : "",
                     (int)json_integer_value(json_object_get(object, "step")));
        json_decref(object);
    }
    free(content);
    return text;
}

START_TEST(lines_of_steps_that_are_trained_again_are_cut_off)
{
    struct scalars *scalars = begin("j-7", 1, 0);
    steps(scalars, 1, 6, 0);
    scalars_evaluation(scalars, 4, 3);
    scalars_destroy(scalars);
    ck_assert_str_eq(steps_of("j-7"), "p0 1 2 3 4 5 6 e4 ");
    scalars = begin("j-7", 2, 4);
    scalars_evaluation(scalars, 4, 3); /* again */
    steps(scalars, 5, 7, 0);
    scalars_destroy(scalars);
    ck_assert_str_eq(steps_of("j-7"), "p0 1 2 3 4 5 6 e4 p4 5 6 7 ");
}
END_TEST

START_TEST(a_job_cuts_only_its_own_lines)
{
    struct scalars *scalars = begin("j-6", 1, 0);
    steps(scalars, 1, 5, 0);
    scalars_destroy(scalars);
    scalars = begin("j-7", 1, 0);
    steps(scalars, 1, 3, 0);
    scalars_destroy(scalars);
    FILE *file = fopen(lines, "ae");
    fputs("{\"name\":\"riddles\",\"job\":\"j-7\",\"st", file); /* it was killed */
    fclose(file);
    scalars = begin("j-7", 2, 0);
    steps(scalars, 1, 2, 0);
    scalars_destroy(scalars);
    ck_assert_str_eq(steps_of("j-6"), "p0 1 2 3 4 5 ");
    ck_assert_str_eq(steps_of("j-7"), "p0 p0 1 2 ");
}
END_TEST

START_TEST(what_cannot_be_written_is_left_out)
{
    log_section = (struct job_log){"/proc/nothing", "/proc/nothing/lines"};
    struct scalars *scalars = begin("j-7", 1, 0);
    steps(scalars, 1, 3, 0);
    scalars_evaluation(scalars, 3, 1);
    scalars_destroy(scalars);
    log_section = (struct job_log){NULL, "/dev/full"};
    scalars = begin("j-7", 1, 0);
    steps(scalars, 1, 3, 0);
    scalars_destroy(scalars);
    log_section = (struct job_log){NULL, NULL};
    ck_assert_ptr_null(begin("j-7", 1, 0));
    scalars_step(NULL, 1, 1, 1, 1);
    scalars_destroy(NULL);
}
END_TEST

SUITE(scalars)
{
    TCase *tcase = tcase_create("scalars");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, checksums_are_those_of_the_papers);
    tcase_add_test(tcase, event_files_have_every_figure);
    tcase_add_test(tcase, a_training_that_goes_back_shows_each_step_once);
    tcase_add_test(tcase, lines_of_steps_that_are_trained_again_are_cut_off);
    tcase_add_test(tcase, a_job_cuts_only_its_own_lines);
    tcase_add_test(tcase, what_cannot_be_written_is_left_out);
    return suite_run("scalars", tcase, NULL);
}
