/* test_measured.c - what jobs have measured comes back from the store as it was. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/store/store.h"
#include "tests/coordinator/store_fixture.h"
#include "tests/support/suite.h"

static struct telemetry *telemetry, *other;
static struct job job;

static void begin(void)
{
    set_up();
    reopen();
    telemetry = telemetry_create(&TELEMETRY_CONFIG_DEFAULT);
    other = NULL;
    job = job_make(7, NULL, 0);
}

static void end(void)
{
    telemetry_destroy(other);
    telemetry_destroy(telemetry);
    tear_down();
}

static void step(uint32_t epoch, uint64_t number, double loss)
{
    const struct step_record record = {.epoch = epoch,
                                       .step = number,
                                       .loss = loss,
                                       .gradient_norm = 0.5,
                                       .tokens = 1000,
                                       .time_s = 0.25,
                                       .end_ms = 1763766000000 + number};
    ck_assert_int_eq(telemetry_step(telemetry, job.id, &record, &err), 0);
}

static void evaluation(uint64_t number, double loss, const char *text)
{
    telemetry_evaluation(telemetry, job.id,
                         &(struct evaluation_record){.step = number,
                                                     .loss = loss,
                                                     .targets = 64,
                                                     .text = text,
                                                     .text_size = text ? strlen(text) : 0});
}

static void times(uint32_t epoch, const char *class, double measured_s)
{
    const struct instruction_record record = {"layer", class, 2, 1, measured_s};
    ck_assert_int_eq(telemetry_instructions(telemetry, job.id, epoch, &record, 1, &err), 0);
}

static void keep(void)
{
    const struct job_telemetry *measured = telemetry_find(telemetry, job.id);
    ck_assert(job_telemetry_unsaved(measured) && telemetry_unsaved(telemetry));
    store_put_measured(store, &job, measured);
    telemetry_saved(telemetry, job.id);
    ck_assert(!job_telemetry_unsaved(measured) && !telemetry_unsaved(telemetry));
    ck_assert(store_changed(store));
    ck_assert_int_eq(store_commit(store, &err), 0);
    ck_assert(!store_changed(store));
}

/* A record of another telemetry, with what the store has. */
static struct job_telemetry *read_back(void)
{
    reopen();
    telemetry_destroy(other);
    other = telemetry_create(&TELEMETRY_CONFIG_DEFAULT);
    struct job_telemetry *back = telemetry_restore(other, job.id);
    ck_assert_msg(store_read_measured(store, &job, back, &err) == 0, "%s", err.text);
    ck_assert(!job_telemetry_unsaved(back));
    return back;
}

static void is_the_same(const struct job_telemetry *back)
{
    const struct job_telemetry *measured = telemetry_find(telemetry, job.id);
    ck_assert_uint_eq(back->steps.count, measured->steps.count);
    ck_assert_uint_eq(back->steps.epoch, measured->steps.epoch);
    for (size_t i = 0; i < back->steps.count; i++) {
        const struct step_point *a = &back->steps.points[i], *b = &measured->steps.points[i];
        ck_assert(a->step == b->step && a->epoch == b->epoch && a->tokens == b->tokens &&
                  a->end_ms == b->end_ms && a->time_s == b->time_s &&
                  a->gradient_norm == b->gradient_norm);
        ck_assert(isnan(a->loss) ? isnan(b->loss) : a->loss == b->loss);
    }
    ck_assert_uint_eq(back->evaluations.count, measured->evaluations.count);
    for (size_t i = 0; i < back->evaluations.count; i++) {
        ck_assert_uint_eq(back->evaluations.items[i].step, measured->evaluations.items[i].step);
        ck_assert_uint_eq(back->evaluations.items[i].targets,
                          measured->evaluations.items[i].targets);
        ck_assert_double_eq(back->evaluations.items[i].loss, measured->evaluations.items[i].loss);
    }
    ck_assert_uint_eq(back->evaluations.text_size, measured->evaluations.text_size);
    if (back->evaluations.text_size > 0)
        ck_assert_mem_eq(back->evaluations.text, measured->evaluations.text,
                         back->evaluations.text_size);
    ck_assert_uint_eq(back->epoch, measured->epoch);
    ck_assert_uint_eq(back->instructions.count, measured->instructions.count);
    for (size_t i = 0; i < back->instructions.count; i++) {
        const struct instruction_sums *a = &back->instructions.kinds[i],
                                      *b = &measured->instructions.kinds[i];
        ck_assert_str_eq(a->block, b->block);
        ck_assert_str_eq(a->class, b->class);
        ck_assert(a->count == b->count && a->predicted_s == b->predicted_s &&
                  a->measured_s == b->measured_s);
        ck_assert_double_eq(instruction_time_median_s(a), instruction_time_median_s(b));
        ck_assert_double_eq(instruction_ratio_median(a), instruction_ratio_median(b));
    }
}

START_TEST(all_that_was_measured_comes_back)
{
    for (uint64_t i = 1; i <= 100; i++)
        step(1, i, i == 50 ? (double)NAN : i == 60 ? (double)INFINITY : 4.0 / (double)i);
    evaluation(50, 3, NULL);
    evaluation(100, 2, "Once upon \xff");
    times(1, "matmul forward", 3);
    times(1, "matmul forward", 5);
    times(1, "all_reduce", 1);
    keep();
    is_the_same(read_back());
}
END_TEST

START_TEST(what_a_new_epoch_repeats_is_replaced)
{
    for (uint64_t i = 1; i <= 100; i++)
        step(1, i, 1);
    evaluation(50, 3, NULL);
    evaluation(100, 2, "old");
    times(1, "matmul forward", 3);
    keep();
    for (uint64_t i = 40; i <= 60; i++)
        step(2, i, 2);
    evaluation(50, 2.5, "new");
    times(2, "softmax", 1);
    keep();
    const struct job_telemetry *back = read_back();
    is_the_same(back);
    ck_assert_uint_eq(back->steps.count, 60);
    ck_assert_uint_eq(back->evaluations.count, 1);
    ck_assert_str_eq(back->instructions.kinds[0].class, "softmax");
}
END_TEST

START_TEST(a_long_curve_is_thinned_out_on_the_disk_as_well)
{
    for (uint64_t i = 1; i <= 20000; i++) {
        step(1, i, (double)i);
        if (i % 500 == 0)
            keep();
    }
    const struct job_telemetry *back = read_back();
    is_the_same(back);
    ck_assert_uint_le(back->steps.count, STEPS_CURVE + STEPS_WINDOW);
}
END_TEST

START_TEST(a_job_that_has_ended_has_its_newest_steps_in_memory)
{
    other = telemetry_create(&TELEMETRY_CONFIG_DEFAULT);
    struct job_telemetry *into = telemetry_restore(other, job.id);
    for (uint64_t i = 1; i <= 500; i++)
        step(1, i, (double)i);
    keep();
    ck_assert_int_eq(store_read_newest_steps(store, &job, STEPS_WINDOW, into, &err), 0);
    ck_assert_uint_eq(into->steps.count, STEPS_WINDOW);
    ck_assert_uint_eq(into->steps.points[0].step, 501 - STEPS_WINDOW);
    ck_assert_double_eq(steps_tokens_per_s(&into->steps), 4000);
    telemetry_release(telemetry, job.id);
    const struct job_telemetry *left = telemetry_find(telemetry, job.id);
    ck_assert(left->partial);
    ck_assert_uint_eq(left->steps.count, STEPS_WINDOW);
    ck_assert_uint_eq(steps_last(&left->steps)->step, 500);
    step(1, 501, 501); /* what is not kept is not let go */
    telemetry_release(telemetry, job.id);
    ck_assert(job_telemetry_unsaved(left));
}
END_TEST

SUITE(measured)
{
    TCase *tcase = tcase_create("measured");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, all_that_was_measured_comes_back);
    tcase_add_test(tcase, what_a_new_epoch_repeats_is_replaced);
    tcase_add_test(tcase, a_long_curve_is_thinned_out_on_the_disk_as_well);
    tcase_add_test(tcase, a_job_that_has_ended_has_its_newest_steps_in_memory);
    return suite_run("measured", tcase, NULL);
}
