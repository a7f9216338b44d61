/* test_replan_figures.c - what is said of a replan: which phase took how long, and what was lost.
 */
#include "coordinator/jobs/jobs.h"
#include "coordinator/planning/planning.h"
#include "coordinator/turn/replan.h"

#include "tests/coordinator/job_fixture.h"

#include <stdlib.h>
#include <string.h>

#define BEGAN_MS 1795846434000 /* a clock of the calendar */

static const struct planning nothing;
static struct replan replan;

/* On workers a and b. */
static const struct job *running(void)
{
    restarts_max = 20;
    replans = true;
    replan = (struct replan){0};
    return job_in(JOB_RUNNING);
}

/* Since the beginning. */
static void follow(const struct job *job, uint64_t after_ms)
{
    replan_follow(&replan, job, &nothing, BEGAN_MS + after_ms);
}

static struct job_event left(const struct job *job, unsigned rank)
{
    struct job_event event = exited(job, rank, 1, "");
    event.exited.by_others = true;
    return event;
}

/* From the break of its epoch to the next, which begins after this step; a second a phase. */
static void move(const struct job *job, uint64_t step, bool from_memory)
{
    must(lost("b"));
    follow(job, 0);
    must(left(job, 0));
    follow(job, 1000);
    views[1].grantable = false;
    add_worker("c", HARDWARE_CPU, 1);
    schedule();
    follow(job, 2000);
    struct device_ref refs[2] = {job->ranks[0].device, job->ranks[1].device};
    must(planned(job, refs, 2));
    follow(job, 3000);
    Gimbal__ReadyRequest said = GIMBAL__READY_REQUEST__INIT;
    said.step = step;
    said.from_memory = from_memory;
    for (unsigned rank = 0; rank < 2; rank++) {
        struct job_event event = ready(job, rank);
        event.step = step;
        must(event);
        replan_ready(&replan, &said);
    }
    follow(job, 4000);
}

/* The next step is finished; the event's own figures, yours, and its text. */
static json_t *end(const struct job *job, uint64_t after_ms, char **text)
{
    json_t *json;
    *text = replan_end(&replan, job, BEGAN_MS + after_ms, &json);
    return json;
}

static double number(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    ck_assert_msg(json_is_number(value), "no %s", key);
    return json_number_value(value);
}

/* A job that is held goes through its new epoch's first step while it is about to pause. */
START_TEST(each_phase_took_its_time_also_of_a_job_that_is_held)
{
    const struct job *job = running();
    struct job_event hold = of(JOB_EVENT_PAUSE, job);
    char *text;
    hold.words = "ada";
    reach(job, 7);
    if (_i == 1)
        must(hold);
    move(job, 7, true);
    ck_assert_int_eq(job->state, _i == 1 ? JOB_PAUSING : JOB_RUNNING);
    json_t *json = end(job, 5000, &text);
    ck_assert_double_eq(number(json, "quiesce_s"), 1);
    ck_assert_double_eq(number(json, "wait_s"), 1);
    ck_assert_double_eq(number(json, "plan_s"), 1);
    ck_assert_double_eq(number(json, "start_s"), 1);
    ck_assert_double_eq(number(json, "step_s"), 1);
    ck_assert_double_eq(number(json, "total_s"), 5);
    ck_assert_msg(strstr(text, "5000 ms: quiesce 1000, wait 1000, plan 1000, start 1000 ") &&
                      strstr(text, ", first step 1000"),
                  "%s", text);
    json_decref(json);
    free(text);
}
END_TEST

/* A coordinator that begins anew knows of a step that was stored now and then. */
START_TEST(steps_that_nobody_has_heard_of_are_not_said_to_be_kept)
{
    const struct job *before = running();
    char *text;
    reach(before, 40);
    struct job *stored = job_copy(before);
    jobs_destroy(jobs);
    jobs_actions_finish(&actions);
    jobs = jobs_create(&JOBS_CONFIG_DEFAULT, 1);
    ck_assert_int_eq(jobs_restore(jobs, stored, &actions, &err), 0);
    job_destroy(stored);
    carry_out();
    jobs_actions_finish(&actions);
    const struct job *job = jobs_find(jobs, "j-1");
    if (_i == 1)
        reach(job, 41);
    move(job, 1, false);
    json_t *json = end(job, 5000, &text);
    ck_assert_double_eq(number(json, "steps_lost"), _i == 1 ? 40 : 39);
    ck_assert_int_eq(json_is_true(json_object_get(json, "steps_lost_at_least")), _i == 0);
    ck_assert_msg(strstr(text, _i == 1 ? ", 40 steps lost" : ", at least 39 steps lost"), "%s",
                  text);
    json_decref(json);
    free(text);
}
END_TEST

SUITE(replan_figures)
{
    TCase *tcase = tcase_create("replan figures");
    tcase_add_checked_fixture(tcase, jobs_setup, jobs_teardown);
    tcase_add_loop_test(tcase, each_phase_took_its_time_also_of_a_job_that_is_held, 0, 2);
    tcase_add_loop_test(tcase, steps_that_nobody_has_heard_of_are_not_said_to_be_kept, 0, 2);
    return suite_run("replan figures", tcase, NULL);
}
