/* test_telemetry.c - steps, instructions and log lines, put together. */
#include "coordinator/telemetry/telemetry.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/telemetry/measured.h"
#include "tests/support/suite.h"

static struct steps steps;
static struct instructions instructions;
static struct error err;

static void setup(void)
{
    steps_init(&steps);
    instructions = (struct instructions){0};
    err.text[0] = '\0';
}

static void teardown(void)
{
    steps_finish(&steps);
    instructions_finish(&instructions);
}

static int step(uint32_t epoch, uint64_t number, double loss, double time_s)
{
    struct step_record record = {.epoch = epoch,
                                 .step = number,
                                 .loss = loss,
                                 .gradient_norm = NAN,
                                 .tokens = 1000,
                                 .time_s = time_s,
                                 .end_ms = number};
    return steps_add(&steps, &record, &err);
}

START_TEST(the_median_is_in_the_middle)
{
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};
    ck_assert_double_eq(median(odd, 3), 3);
    ck_assert_double_eq(median(even, 4), 2.5);
    ck_assert_double_eq(median(NULL, 0), 0);
}
END_TEST

START_TEST(a_step_takes_as_long_as_its_slowest_rank)
{
    ck_assert_int_eq(step(1, 1, NAN, 0.5), 0);
    ck_assert_int_eq(step(1, 1, 4.25, 0.25), 0);
    ck_assert_int_eq(step(1, 1, NAN, 2), 0);
    ck_assert_double_eq(steps_last(&steps)->loss, 4.25);
    ck_assert_double_eq(steps_last(&steps)->time_s, 2);
    ck_assert_double_eq(steps_tokens_per_s(&steps), 500);
}
END_TEST

START_TEST(the_rate_is_that_of_the_newest_sixteen_steps)
{
    ck_assert_ptr_null(steps_last(&steps));
    ck_assert_double_eq(steps_tokens_per_s(&steps), 0);
    for (uint64_t i = 1; i <= 20; i++)
        ck_assert_int_eq(step(1, i, 1, 10), 0);
    for (uint64_t i = 21; i <= 36; i++)
        ck_assert_int_eq(step(1, i, 1, i % 2 ? 1.5 : 0.5), 0);
    ck_assert_double_eq(steps_tokens_per_s(&steps), 1000);
    ck_assert_double_eq(steps_time_median_s(&steps), 10);
}
END_TEST

START_TEST(a_late_rank_is_heard_within_the_window_and_refused_after_it)
{
    for (uint64_t i = 1; i <= STEPS_WINDOW + 1; i++)
        ck_assert_int_eq(step(1, i, i == 2 ? NAN : 1, 1), 0);
    ck_assert_int_eq(step(1, 2, 7, 3), 0);
    ck_assert_uint_eq(steps.points[1].step, 2);
    ck_assert_double_eq(steps.points[1].loss, 7);
    ck_assert_double_eq(steps.points[1].time_s, 3);
    ck_assert_int_eq(step(1, 1, 7, 3), -ESTALE);
    ck_assert_str_eq(err.text, "step 1 is over, the job is at 65");
}
END_TEST

START_TEST(steps_that_are_repeated_in_a_new_epoch_replace_the_old)
{
    for (uint64_t i = 1; i <= 10; i++)
        step(1, i, 1, 1);
    ck_assert_int_eq(step(2, 8, 5, 2), 0);
    ck_assert_uint_eq(steps.count, 8);
    ck_assert_double_eq(steps_last(&steps)->loss, 5);
    ck_assert_uint_eq(steps.points[6].step, 7);
    ck_assert_uint_eq(steps.points[6].epoch, 1);
    ck_assert_uint_eq(steps.points[7].epoch, 2);
    ck_assert_int_eq(step(1, 11, 1, 1), -ESTALE);
    ck_assert_str_eq(err.text, "step 11 is of epoch 1, the job is in 2");
}
END_TEST

START_TEST(a_late_step_of_an_epoch_that_is_over_closes_its_gap)
{
    for (uint64_t i = 1; i <= 10; i++)
        step(1, i, 1, 1);
    for (uint64_t i = 14; i <= 20; i++)
        step(2, i, 2, 1);
    steps_saved(&steps);
    ck_assert_int_eq(step(1, 13, 1, 1), 0);
    ck_assert_uint_eq(steps.changed_from, 13);
    ck_assert_int_eq(step(1, 11, 1, 1), 0);
    ck_assert_int_eq(step(1, 12, 1, 1), 0);
    ck_assert_int_eq(step(1, 12, 1, 1), -ESTALE); /* again */
    ck_assert_int_eq(step(1, 14, 1, 1), -ESTALE); /* it was trained again */
    ck_assert_int_eq(step(1, 21, 1, 1), -ESTALE);
    ck_assert_uint_eq(steps.count, 20);
    for (size_t i = 0; i < steps.count; i++) {
        ck_assert_uint_eq(steps.points[i].step, i + 1);
        ck_assert_uint_eq(steps.points[i].epoch, i + 1 < 14 ? 1 : 2);
    }
    ck_assert_uint_eq(steps.epoch, 2);
}
END_TEST

START_TEST(a_curve_keeps_every_step_as_long_as_they_are_few)
{
    for (uint64_t i = 1; i <= STEPS_CURVE + STEPS_WINDOW; i++)
        step(1, i, (double)i, 1);
    ck_assert_uint_eq(steps.count, STEPS_CURVE + STEPS_WINDOW);
    for (size_t i = 0; i < steps.count; i++)
        ck_assert_uint_eq(steps.points[i].step, i + 1);
}
END_TEST

START_TEST(a_curve_of_any_length_stays_within_its_points)
{
    size_t count;
    for (uint64_t i = 1; i <= 100000; i++) {
        step(1, i, (double)i, 1);
        ck_assert_uint_le(steps.count, STEPS_CURVE + STEPS_WINDOW);
        ck_assert_uint_ge(steps.count, i < STEPS_CURVE / 2 ? i : STEPS_CURVE / 2);
    }
    ck_assert_uint_eq(steps.stride, 32);
    for (size_t i = 0; i < steps.count - STEPS_WINDOW; i++)
        ck_assert_uint_eq(steps.points[i].step, (i + 1) * steps.stride);
    const struct step_point *window = steps_window(&steps, &count);
    ck_assert_uint_eq(count, STEPS_WINDOW);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(window[i].step, 100000 - STEPS_WINDOW + 1 + i);
    for (size_t i = 0; i < steps.count; i++)
        ck_assert_double_eq(steps.points[i].loss, (double)steps.points[i].step);
}
END_TEST

/* What a store has that is told of changes only, in the way in which store/measured.c writes it. */
static struct step_point disk_points[STEPS_CURVE + 2 * STEPS_WINDOW];
static size_t disk_count;

static void tell_store(void)
{
    size_t count, left = 0;
    uint64_t window_from = steps_window(&steps, &count)->step;
    for (size_t i = 0; i < disk_count; i++) {
        bool gone = disk_points[i].step >= steps.gone_from && disk_points[i].step < window_from &&
                    disk_points[i].step % steps.stride != 0;
        if (!gone && disk_points[i].step < steps.changed_from)
            disk_points[left++] = disk_points[i];
    }
    disk_count = left;
    for (size_t i = 0; i < steps.count; i++)
        if (steps.points[i].step >= steps.changed_from)
            disk_points[disk_count++] = steps.points[i];
    steps_saved(&steps);
}

START_TEST(a_store_that_is_told_of_changes_has_the_curve)
{
    struct steps back;
    disk_count = 0;
    steps_init(&back);
    for (uint64_t i = 1; i <= 20000; i++) {
        step(1, i, (double)i, 1);
        if (i % 37 == 0)
            tell_store();
    }
    step(1, 19990, 1, 3); /* a slow rank */
    for (uint64_t i = 19995; i <= 40000; i++) {
        step(2, i, (double)i, 1);
        if (i % 41 == 0)
            tell_store();
    }
    tell_store();
    ck_assert_uint_eq(disk_count, steps.count);
    for (size_t i = 0; i < disk_count; i++) {
        ck_assert_uint_eq(disk_points[i].step, steps.points[i].step);
        ck_assert_uint_eq(disk_points[i].epoch, steps.points[i].epoch);
        ck_assert_double_eq(disk_points[i].loss, steps.points[i].loss);
        ck_assert_double_eq(disk_points[i].time_s, steps.points[i].time_s);
    }
    steps_restore(&back, disk_points, disk_count);
    ck_assert_uint_eq(back.stride, steps.stride);
    ck_assert_uint_eq(back.epoch, 2);
    const struct step_record next = {.epoch = 2, .step = 40001, .time_s = 1};
    ck_assert_int_eq(steps_add(&back, &next, &err), 0);
    ck_assert_uint_eq(back.changed_from, 40001);
    steps_saved(&back);
    steps_release(&back);
    ck_assert_uint_eq(back.count, STEPS_WINDOW);
    ck_assert_uint_eq(steps_last(&back)->step, 40001);
    steps_finish(&back);
}
END_TEST

START_TEST(what_is_no_step_is_refused)
{
    ck_assert_int_eq(step(1, 0, 1, 1), -EINVAL);
    ck_assert_int_eq(step(1, 1, 1, 0), -EINVAL);
    ck_assert_int_eq(step(1, 1, 1, INFINITY), -EINVAL);
    ck_assert_str_eq(err.text, "step 1 took inf s; it must be more than 0");
    ck_assert_uint_eq(steps.count, 0);
}
END_TEST

static int instruction(const char *block, const char *class, uint64_t count, double predicted_s,
                       double measured_s)
{
    struct instruction_record record = {block, class, count, predicted_s, measured_s};
    return instructions_add(&instructions, &record, &err);
}

static const struct instruction_sums *sums_of(const char *block, const char *class)
{
    for (size_t i = 0; i < instructions.count; i++)
        if (strcmp(instructions.kinds[i].block, block) == 0 &&
            strcmp(instructions.kinds[i].class, class) == 0)
            return &instructions.kinds[i];
    return NULL;
}

START_TEST(instructions_are_summed_by_block_type_and_class)
{
    ck_assert_int_eq(instruction("layer", "matmul forward", 4, 2, 4), 0);
    ck_assert_int_eq(instruction("head", "matmul forward", 1, 1, 1), 0);
    ck_assert_int_eq(instruction("layer", "all_reduce", 1, 0, 1), 0);
    ck_assert_int_eq(instruction("layer", "matmul forward", 4, 2, 16), 0);
    ck_assert_int_eq(instruction("layer", "matmul forward", 2, 1, 3), 0);
    const struct instruction_sums *kind = sums_of("layer", "matmul forward");
    ck_assert_uint_eq(kind->count, 10);
    ck_assert_double_eq(kind->predicted_s, 5);
    ck_assert_double_eq(kind->measured_s, 23);
    ck_assert_double_eq(instruction_time_median_s(kind), 1.5);
    ck_assert_double_eq(instruction_ratio_median(kind), 3);
    kind = sums_of("layer", "all_reduce");
    ck_assert_double_eq(instruction_ratio_median(kind), 0);
    ck_assert_ptr_null(sums_of("layer", "softmax"));
    ck_assert_uint_eq(instructions.count, 3);
    ck_assert_str_eq(instructions.kinds[0].block, "head");
    ck_assert_str_eq(instructions.kinds[1].class, "all_reduce");
}
END_TEST

START_TEST(medians_follow_the_newest_records)
{
    for (int i = 0; i < 100; i++)
        instruction("layer", "softmax", 1, 1, 1);
    for (int i = 0; i < INSTRUCTIONS_WINDOW / 2 + 1; i++)
        instruction("layer", "softmax", 1, 1, 3);
    const struct instruction_sums *kind = sums_of("layer", "softmax");
    ck_assert_double_eq(instruction_ratio_median(kind), 3);
}
END_TEST

START_TEST(impossible_and_too_many_instructions_are_refused)
{
    char name[16];
    ck_assert_int_eq(instruction("layer", "softmax", 0, 1, 1), -EINVAL);
    ck_assert_int_eq(instruction("layer", "softmax", 1, NAN, 1), -EINVAL);
    ck_assert_int_eq(instruction("layer", "softmax", 1, 1, -1), -EINVAL);
    ck_assert_str_eq(err.text, "'softmax' of 'layer': 1 instructions of -1 s, predicted 1 s, "
                               "cannot be");
    ck_assert_int_eq(instruction("", "softmax", 1, 1, 1), -EINVAL);
    for (int i = 0; i < INSTRUCTIONS_MAX; i++) {
        snprintf(name, sizeof name, "k%d", i);
        ck_assert_int_eq(instruction("layer", name, 1, 1, 1), 0);
    }
    ck_assert_int_eq(instruction("layer", "one more", 1, 1, 1), -ENOSPC);
    ck_assert_int_eq(instruction("layer", "k7", 1, 1, 1), 0);
    ck_assert_uint_eq(instructions.count, INSTRUCTIONS_MAX);
}
END_TEST

static uint64_t add_line(struct lines *lines, int rank, uint64_t time_ms, const char *text)
{
    const struct log_line line = {
        .rank = rank, .epoch = 3, .time_ms = time_ms, .level = "warn", .text = (char *)text};
    return lines_add(lines, &line);
}

START_TEST(a_reader_gets_every_line_once)
{
    struct lines *lines = lines_create(100, 1 << 20);
    const struct log_line *got;
    size_t count;
    ck_assert_int_eq(lines_after(lines, 0, &got, &count, &err), 0);
    ck_assert_uint_eq(count, 0);
    ck_assert_uint_eq(add_line(lines, 0, 10, "one\n"), 1);
    ck_assert_uint_eq(add_line(lines, LINES_NO_RANK, 11, "t\two\x1b[1m \xc3\xa9"), 2);
    ck_assert_int_eq(lines_after(lines, 0, &got, &count, &err), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(got[0].text, "one");
    ck_assert_str_eq(got[1].text, "t\two?[1m ??");
    ck_assert_int_eq(got[1].rank, LINES_NO_RANK);
    ck_assert_uint_eq(got[1].epoch, 3);
    ck_assert_str_eq(got[1].level, "warn");
    const struct log_line loud = {.level = "l\xffud", .text = (char *)"!"};
    ck_assert_uint_eq(lines_add(lines, &loud), 3);
    ck_assert_int_eq(lines_after(lines, 2, &got, &count, &err), 0);
    ck_assert_str_eq(got[0].level, "");
    ck_assert_int_eq(lines_after(lines, 1, &got, &count, &err), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(got[0].revision, 2);
    ck_assert_int_eq(lines_after(lines, 4, &got, &count, &err), -ERANGE);
    lines_destroy(lines);
}
END_TEST

START_TEST(dropped_lines_are_said_and_the_rest_is_whole)
{
    struct lines *lines = lines_create(10, 1 << 20);
    const struct log_line *got;
    size_t count;
    char text[16];
    for (unsigned i = 1; i <= 1000; i++) {
        snprintf(text, sizeof text, "line %u", i);
        ck_assert_uint_eq(add_line(lines, 0, i, text), i);
        ck_assert_int_eq(lines_after(lines, i > 10 ? i - 10 : 0, &got, &count, &err), 0);
        ck_assert_uint_eq(count, i < 10 ? i : 10);
        ck_assert_uint_eq(got[count - 1].revision, i);
        ck_assert_str_eq(got[count - 1].text, text);
    }
    ck_assert_int_eq(lines_after(lines, 989, &got, &count, &err), -ERANGE);
    ck_assert_str_eq(err.text, "lines after 989: there are those from 991 to 1000");
    lines_destroy(lines);
}
END_TEST

START_TEST(lines_are_bounded_in_bytes_and_long_ones_are_cut)
{
    struct lines *lines = lines_create(100, 5000);
    const struct log_line *got;
    size_t count;
    char *text = calloc(1, 8001);
    memset(text, 'x', 8000);
    add_line(lines, 0, 0, "short");
    add_line(lines, 0, 0, text);
    add_line(lines, 0, 0, text);
    ck_assert_int_eq(lines_after(lines, 2, &got, &count, &err), 0);
    ck_assert_uint_eq(strlen(got[0].text), LINES_TEXT_SIZE - 1);
    ck_assert_str_eq(got[0].text + LINES_TEXT_SIZE - 5, "x...");
    ck_assert_int_eq(lines_after(lines, 1, &got, &count, &err), -ERANGE);
    free(text);
    lines_destroy(lines);
}
END_TEST

static size_t line_count(const struct lines *lines)
{
    const struct log_line *first;
    size_t count;
    ck_assert_int_eq(lines_after(lines, 0, &first, &count, &err), 0);
    return count;
}

START_TEST(jobs_are_kept_apart_and_forgotten)
{
    struct telemetry *telemetry = telemetry_create(&TELEMETRY_CONFIG_DEFAULT);
    struct step_record record = {.epoch = 1, .step = 3, .loss = 2, .tokens = 10, .time_s = 1};
    struct instruction_record told = {"layer", "softmax", 1, 1, 2};
    ck_assert_ptr_null(telemetry_find(telemetry, "j-1"));
    ck_assert_int_eq(telemetry_step(telemetry, "j-1", &record, &err), 0);
    ck_assert_uint_eq(telemetry_line(telemetry, "j-2", &(struct log_line){.text = (char *)"hello"}),
                      1);
    ck_assert_int_eq(telemetry_instructions(telemetry, "j-1", 1, &told, 1, &err), 0);
    ck_assert_uint_eq(steps_last(&telemetry_find(telemetry, "j-1")->steps)->step, 3);
    ck_assert_uint_eq(line_count(telemetry_find(telemetry, "j-1")->lines), 0);
    ck_assert_uint_eq(line_count(telemetry_find(telemetry, "j-2")->lines), 1);
    telemetry_forget(telemetry, "j-1");
    telemetry_forget(telemetry, "j-9");
    ck_assert_ptr_null(telemetry_find(telemetry, "j-1"));
    ck_assert_ptr_nonnull(telemetry_find(telemetry, "j-2"));
    telemetry_destroy(telemetry);
}
END_TEST

START_TEST(a_new_plan_begins_new_instruction_records)
{
    struct telemetry *telemetry = telemetry_create(&TELEMETRY_CONFIG_DEFAULT);
    struct instruction_record old = {"layer", "softmax", 1, 1, 2}, new = {"head", "loss", 1, 1, 2};
    ck_assert_int_eq(telemetry_instructions(telemetry, "j-1", 1, &old, 1, &err), 0);
    ck_assert_int_eq(telemetry_instructions(telemetry, "j-1", 2, &new, 1, &err), 0);
    ck_assert_int_eq(telemetry_instructions(telemetry, "j-1", 1, &old, 1, &err), -ESTALE);
    ck_assert_str_eq(err.text, "instructions are of epoch 1, j-1 is in 2");
    const struct job_telemetry *job = telemetry_find(telemetry, "j-1");
    ck_assert_uint_eq(job->instructions.count, 1);
    ck_assert_str_eq(job->instructions.kinds[0].block, "head");
    telemetry_destroy(telemetry);
}
END_TEST

START_TEST(losses_are_kept_by_step_and_the_newest_text)
{
    struct telemetry *telemetry = telemetry_create(&TELEMETRY_CONFIG_DEFAULT);
    struct evaluation_record record = {.targets = 64};
    for (uint64_t step = 10; step <= 30; step += 10) {
        record.step = step;
        record.loss = 40.0 / (double)step;
        telemetry_evaluation(telemetry, "j-1", &record);
    }
    const struct evaluations *kept = &telemetry_find(telemetry, "j-1")->evaluations;
    ck_assert_uint_eq(kept->count, 3);
    /* A new epoch went back to step 15. */
    record = (struct evaluation_record){
        .step = 20, .loss = 2.5, .targets = 64, .text = "old", .text_size = 3};
    telemetry_evaluation(telemetry, "j-1", &record);
    ck_assert_uint_eq(kept->count, 2);
    ck_assert_double_eq(kept->items[0].loss, 4);
    ck_assert_double_eq(kept->items[1].loss, 2.5);
    /* Text alone is no loss. */
    record = (struct evaluation_record){.step = 40, .text = "\xff\0z", .text_size = 3};
    telemetry_evaluation(telemetry, "j-1", &record);
    ck_assert_uint_eq(kept->count, 2);
    ck_assert_uint_eq(kept->text_size, 3);
    ck_assert_mem_eq(kept->text, "\xff\0z", 3);
    telemetry_destroy(telemetry);
}
END_TEST

START_TEST(of_many_losses_the_newest_are_kept)
{
    struct evaluations kept = {0};
    for (uint64_t step = 1; step <= EVALUATIONS_MAX + 2; step++)
        evaluations_add(&kept, &(struct evaluation){step, 8, 1});
    ck_assert_uint_eq(kept.count, EVALUATIONS_MAX);
    ck_assert_uint_eq(kept.items[0].step, 3);
    ck_assert_uint_eq(kept.items[EVALUATIONS_MAX - 1].step, EVALUATIONS_MAX + 2);
    evaluations_finish(&kept);
}
END_TEST

SUITE(telemetry)
{
    TCase *tcase = tcase_create("telemetry");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_median_is_in_the_middle);
    tcase_add_test(tcase, a_step_takes_as_long_as_its_slowest_rank);
    tcase_add_test(tcase, the_rate_is_that_of_the_newest_sixteen_steps);
    tcase_add_test(tcase, a_late_rank_is_heard_within_the_window_and_refused_after_it);
    tcase_add_test(tcase, steps_that_are_repeated_in_a_new_epoch_replace_the_old);
    tcase_add_test(tcase, a_late_step_of_an_epoch_that_is_over_closes_its_gap);
    tcase_add_test(tcase, a_curve_keeps_every_step_as_long_as_they_are_few);
    tcase_add_test(tcase, a_curve_of_any_length_stays_within_its_points);
    tcase_add_test(tcase, a_store_that_is_told_of_changes_has_the_curve);
    tcase_add_test(tcase, what_is_no_step_is_refused);
    tcase_add_test(tcase, instructions_are_summed_by_block_type_and_class);
    tcase_add_test(tcase, medians_follow_the_newest_records);
    tcase_add_test(tcase, impossible_and_too_many_instructions_are_refused);
    tcase_add_test(tcase, a_reader_gets_every_line_once);
    tcase_add_test(tcase, dropped_lines_are_said_and_the_rest_is_whole);
    tcase_add_test(tcase, lines_are_bounded_in_bytes_and_long_ones_are_cut);
    tcase_add_test(tcase, jobs_are_kept_apart_and_forgotten);
    tcase_add_test(tcase, a_new_plan_begins_new_instruction_records);
    tcase_add_test(tcase, losses_are_kept_by_step_and_the_newest_text);
    tcase_add_test(tcase, of_many_losses_the_newest_are_kept);
    return suite_run("telemetry", tcase, NULL);
}
