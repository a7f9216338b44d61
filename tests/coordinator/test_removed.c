/* test_removed.c - jobs that have ended leave the store, but their numbers do not, and it stays as
 * large as it is. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/store/internal.h"
#include "coordinator/store/store.h"
#include "tests/coordinator/store_fixture.h"
#include "tests/support/suite.h"

static uint64_t revision;

static void begin(void)
{
    set_up();
    reopen();
    revision = 0;
}

static void tell(const char *job, const char *kind)
{
    Gimbal__Event event = GIMBAL__EVENT__INIT;
    event.job = (char *)job;
    event.kind = (char *)kind;
    event.text = (char *)"something that has happened to it, in a sentence of some length";
    store_put_event(store, ++revision, &event);
}

static void commit(void)
{
    ck_assert_msg(store_commit(store, &err) == 0, "%s", err.text);
}

/* A job that has run for so many steps, and ended. */
static struct job put_ended(uint64_t number, uint64_t ended_ms, uint64_t steps)
{
    struct job_rank rank = {.device = {"node-a", 1, 0}, .state = JOB_RANK_EXITED};
    struct job job = job_make(number, &rank, 1);
    struct telemetry *telemetry = telemetry_create(&TELEMETRY_CONFIG_DEFAULT);
    struct store_plan plan = {.json = (char *)"{}", .candidates = (char *)""};
    job.state = JOB_DONE;
    job.ended_ms = ended_ms;
    for (uint64_t i = 1; i <= steps; i++) {
        const struct step_record record = {.epoch = 3, .step = i, .loss = 2, .time_s = 1};
        telemetry_step(telemetry, job.id, &record, NULL);
    }
    telemetry_evaluation(telemetry, job.id,
                         &(struct evaluation_record){
                             .step = 1, .loss = 1, .targets = 1, .text = "abc", .text_size = 3});
    store_put_job(store, &job);
    store_put_plan(store, &job, "p-1", &plan);
    store_put_measured(store, &job, telemetry_find(telemetry, job.id));
    store_put_checkpoint(store, &job,
                         &(struct store_checkpoint){.step = 1, .epoch = 3, .folder = "/c"}, 3);
    store_put_value(store, job.id, 3, "key", "value", 5);
    tell(job.id, "job-done");
    telemetry_destroy(telemetry);
    return job;
}

/* Numbers of the jobs that are due, as in "3 1 ". */
static const char *overdue(size_t jobs_max, uint64_t before_ms, size_t most)
{
    static char text[128];
    uint64_t numbers[16];
    size_t count;
    text[0] = '\0';
    ck_assert_msg(store_read_overdue(store, jobs_max, before_ms, numbers, most, &count, &err) == 0,
                  "%s", err.text);
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d ", (int)numbers[i]);
    return text;
}

START_TEST(those_that_ended_first_are_due)
{
    static const uint64_t ended_ms[] = {500, 200, 300, 0, 300, 400};
    for (uint64_t i = 0; i < 6; i++)
        put_ended(i + 1, ended_ms[i], 0);
    ck_assert_str_eq(overdue(SIZE_MAX, 0, 9), "");
    ck_assert_str_eq(overdue(5, 0, 9), "");
    ck_assert_str_eq(overdue(3, 0, 9), "2 3 ");
    ck_assert_str_eq(overdue(1, 0, 9), "2 3 5 6 ");
    ck_assert_str_eq(overdue(1, 0, 2), "2 3 ");
    ck_assert_str_eq(overdue(SIZE_MAX, 300, 9), "2 ");
    ck_assert_str_eq(overdue(SIZE_MAX, 301, 9), "2 3 5 ");
    ck_assert_str_eq(overdue(4, 301, 9), "2 3 5 ");
}
END_TEST

static uint64_t rows_of(const char *text)
{
    sqlite3_stmt *row = sql_bind(&store->sql, text, "");
    ck_assert(sql_step(&store->sql, row));
    uint64_t count = sql_number(row, 0);
    sql_leave(row);
    return count;
}

static int no_job(void *data, const struct job *job, struct error *words)
{
    (void)data, (void)words;
    ck_abort_msg("%s was read", job->id);
}

START_TEST(nothing_is_left_of_a_job_but_its_number)
{
    struct store_removed removed;
    uint64_t number;
    put_ended(7, 1234, 100);
    commit();
    store_remove_job(store, 7);
    commit();
    reopen();
    ck_assert_int_eq(store_read_jobs(store, SIZE_MAX, no_job, NULL, &err), 0);
    ck_assert_uint_eq(rows_of("SELECT (SELECT COUNT(*) FROM ranks) + (SELECT COUNT(*) FROM plans)"
                              " + (SELECT COUNT(*) FROM steps) + (SELECT COUNT(*) FROM samples)"
                              " + (SELECT COUNT(*) FROM evaluations)"
                              " + (SELECT COUNT(*) FROM checkpoints)"
                              " + (SELECT COUNT(*) FROM kept_values)"),
                      0);
    ck_assert_int_eq(store_find_removed(store, 7, &removed, &err), 1);
    ck_assert(removed.state == JOB_DONE && removed.ended_ms == 1234);
    ck_assert_int_eq(store_find_removed(store, 8, &removed, &err), 0);
    ck_assert_int_eq(store_next_number(store, &number, &err), 0);
    ck_assert_uint_eq(number, 8);
    /* The newest event says which revision is the next, whoever it is of. */
    ck_assert_uint_eq(rows_of("SELECT MAX(revision) FROM events"), 1);
    tell("", "node-joined");
    put_ended(8, 1235, 1);
    store_remove_job(store, 7);
    ck_assert_uint_eq(rows_of("SELECT COUNT(*) FROM events WHERE job = 'j-7'"), 0);
}
END_TEST

START_TEST(three_thousand_jobs_take_no_more_room_than_five_hundred)
{
    uint64_t bytes = 0, numbers[16];
    size_t count;
    for (uint64_t number = 1; number <= 3000; number++) {
        put_ended(number, 1000 + number, 60);
        for (size_t i = 0; i < 10; i++)
            tell("j-1", "step");
        ck_assert_int_eq(store_read_overdue(store, 500, 0, numbers, 16, &count, &err), 0);
        for (size_t i = 0; i < count; i++)
            store_remove_job(store, numbers[i]);
        commit();
        if (number == 600)
            bytes = rows_of("PRAGMA page_count") * rows_of("PRAGMA page_size");
    }
    uint64_t events = rows_of("SELECT SUM(LENGTH(text)) + 64 * COUNT(*) FROM events WHERE kind ="
                              " 'step'");
    uint64_t now = rows_of("PRAGMA page_count") * rows_of("PRAGMA page_size");
    ck_assert_msg(now < bytes + 2 * events + (100 << 10), "%d bytes became %d, %d are steps",
                  (int)bytes, (int)now, (int)events);
    ck_assert_uint_eq(rows_of("SELECT COUNT(*) FROM jobs"), 500);
    ck_assert_uint_eq(rows_of("SELECT COUNT(*) FROM removed"), 2500);
}
END_TEST

START_TEST(of_old_events_those_of_jobs_stay)
{
    tell("", "node-joined");
    tell("j-1", "plan-chosen");
    tell("j-1", "step");
    for (size_t i = 0; i < STORE_JOB_EVENTS_MAX + 500; i++)
        tell("j-2", "evaluation");
    while (revision < STORE_EVENTS_MAX + 3000)
        tell("j-3", "step");
    commit();
    ck_assert_uint_eq(rows_of("SELECT COUNT(*) FROM events WHERE job = ''"), 0);
    ck_assert_uint_eq(rows_of("SELECT COUNT(*) FROM events WHERE job = 'j-1'"), 1);
    ck_assert_uint_eq(rows_of("SELECT COUNT(*) FROM events WHERE job = 'j-2'"),
                      STORE_JOB_EVENTS_MAX);
    ck_assert_uint_le(rows_of("SELECT COUNT(*) FROM events WHERE job = 'j-3'"),
                      STORE_EVENTS_MAX + 1000);
}
END_TEST

SUITE(removed)
{
    TCase *tcase = tcase_create("removed");
    tcase_add_checked_fixture(tcase, begin, tear_down);
    tcase_add_test(tcase, those_that_ended_first_are_due);
    tcase_add_test(tcase, nothing_is_left_of_a_job_but_its_number);
    tcase_add_test(tcase, three_thousand_jobs_take_no_more_room_than_five_hundred);
    tcase_add_test(tcase, of_old_events_those_of_jobs_stay);
    return suite_run("removed", tcase, NULL);
}
