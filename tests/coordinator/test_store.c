/* test_store.c - what was committed is there again, whatever the disk does; and in what words the
 * store refuses to be opened. */
#include "coordinator/store/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/memory.h"
#include "tests/coordinator/disk.h"
#include "tests/coordinator/store_fixture.h"
#include "tests/support/suite.h"

START_TEST(a_job_comes_back_as_it_was)
{
    struct job_rank ranks[2] = {
        {.device = {"node-a", 0xffffffffffffffff, 3}, .state = JOB_RANK_EXITED, .status = 137},
        {.device = {"node-b", 1, 0}, .state = JOB_RANK_LOST}};
    struct job job = job_make(5, ranks, 2), *back;
    job.origin = (char *)"/c/step-3.epoch-1";
    job.origin_step = 3;
    job.origin_samples = 24;
    job.origin_weights = true;
    reopen();
    store_put_job(store, &job);
    job.rank_count = 1; /* the newest is what counts */
    store_put_job(store, &job);
    ck_assert_int_eq(store_commit(store, &err), 0);
    reopen();
    back = job_back(5);
    ck_assert_ptr_nonnull(back);
    ck_assert_str_eq(back->id, "j-5");
    ck_assert_str_eq(back->text, job.text);
    ck_assert_str_eq(back->given, "{}");
    ck_assert_str_eq(back->named, job.named);
    ck_assert_str_eq(back->origin, job.origin);
    ck_assert_str_eq(back->saves_in, "/c/gpt");
    ck_assert(back->origin_step == 3 && back->origin_samples == 24 && back->origin_weights);
    ck_assert_str_eq(back->words, job.words);
    ck_assert_str_eq(back->plan, "p-1");
    ck_assert(back->state == JOB_RUNNING && back->kind == JOB_GPU && back->holding);
    ck_assert_uint_eq(back->devices_max, 4294967295u);
    ck_assert_uint_eq(back->epoch, 3);
    ck_assert_uint_eq(back->started_ms, job.started_ms);
    ck_assert_double_eq(back->loss, 2.5);
    ck_assert_str_eq(back->held, "ada: \u00b7");
    ck_assert_uint_eq(back->pauses, 2);
    ck_assert_uint_eq(back->resumes, 1);
    ck_assert_uint_eq(back->restarts, 4);
    ck_assert_uint_eq(back->restarts_max, 20);
    ck_assert_uint_eq(back->faults, 2);
    ck_assert_uint_eq(back->reached_step, 6);
    ck_assert_str_eq(back->again, "restart 4 of 20");
    ck_assert(back->saves && back->releases);
    ck_assert_uint_eq(back->rank_count, 1);
    ck_assert_uint_eq(back->ranks[0].device.instance, 0xffffffffffffffff);
    ck_assert_uint_eq(back->ranks[0].device.index, 3);
    ck_assert(back->ranks[0].state == JOB_RANK_EXITED && back->ranks[0].status == 137);
    job_destroy(back);
}
END_TEST

START_TEST(the_files_that_a_job_read_come_back)
{
    struct job job = job_make(5, NULL, 0), none = job_make(6, NULL, 0);
    struct corpus *corpus = corpus_create("node-a", 2), *back;
    corpus_add(corpus, "/data/b", 1, 0xffffffffffffffff);
    corpus_add(corpus, "/data/a", 2, 3);
    reopen();
    store_put_corpus(store, &job, corpus);
    ck_assert_int_eq(store_commit(store, &err), 0);
    reopen();
    ck_assert_int_eq(store_read_corpus(store, &none, &back, &err), 0);
    ck_assert_ptr_null(back);
    ck_assert_int_eq(store_read_corpus(store, &job, &back, &err), 0);
    ck_assert_int_eq(corpus_compare(corpus, back, &err), 0);
    ck_assert_str_eq(back->node, "node-a");
    ck_assert_uint_eq(back->epoch, 2);
    ck_assert_uint_eq(back->count, 2);
    ck_assert_str_eq(back->files[0].path, "/data/b");
    corpus_destroy(corpus);
    corpus_destroy(back);
}
END_TEST

START_TEST(what_was_not_committed_is_forgotten)
{
    struct job job = job_make(1, NULL, 0);
    uint64_t number;
    reopen();
    store_put_job(store, &job);
    reopen();
    ck_assert_ptr_null(job_back(1));
    ck_assert_int_eq(store_next_number(store, &number, &err), 0);
    ck_assert_uint_eq(number, 1);
}
END_TEST

START_TEST(terms_grow_and_the_cluster_stays)
{
    uint64_t term, cluster = 0;
    for (uint64_t start = 1; start <= 3; start++) {
        reopen();
        ck_assert_int_eq(store_begin_term(store, &term, &err), 0);
        ck_assert_uint_eq(term, start);
        ck_assert(cluster == 0 || store_cluster(store) == cluster);
        cluster = store_cluster(store);
        ck_assert_uint_ne(cluster, 0);
    }
    store_close(store);
    disk_clear();
    store = NULL;
    reopen();
    ck_assert_uint_ne(store_cluster(store), cluster);
}
END_TEST

static int count_job(void *data, const struct job *job, struct error *words)
{
    char *text = data;
    (void)words;
    snprintf(text + strlen(text), 64 - strlen(text), "%s ", job->id);
    return 0;
}

START_TEST(old_jobs_that_ended_are_not_read_but_found_by_key)
{
    char keys[6][8], text[64] = "";
    struct job *back;
    reopen();
    for (uint64_t number = 1; number <= 5; number++) {
        struct job job = job_make(number, NULL, 0);
        snprintf(keys[number], sizeof keys[number], "k%llu", (unsigned long long)number);
        job.key = keys[number];
        job.ended_ms = number == 2 ? 0 : 1000;
        store_put_job(store, &job);
    }
    ck_assert_int_eq(store_commit(store, &err), 0);
    ck_assert_int_eq(store_read_jobs(store, 2, count_job, text, &err), 0);
    ck_assert_str_eq(text, "j-2 j-4 j-5 ");
    ck_assert_int_eq(store_find_key(store, "ada", "k1", &back, &err), 0);
    ck_assert_str_eq(back->id, "j-1");
    job_destroy(back);
    ck_assert_int_eq(store_find_key(store, "bob", "k1", &back, &err), 0);
    ck_assert_ptr_null(back);
    ck_assert_int_eq(store_find_key(store, "ada", "", &back, &err), 0);
    ck_assert_ptr_null(back);
}
END_TEST

START_TEST(a_plan_belongs_to_its_epoch)
{
    uint64_t hashes[2] = {1, 0xfedcba9876543210};
    double compute_s[2] = {0.5, 0.25};
    struct store_plan plan = {(char *)"{\"id\":1}", (char *)"table", hashes, 2, compute_s}, back;
    struct job job = job_make(1, NULL, 0);
    reopen();
    store_put_job(store, &job);
    store_put_plan(store, &job, "p-9", &plan);
    ck_assert_int_eq(store_commit(store, &err), 0);
    reopen();
    ck_assert_int_eq(store_read_plan(store, &job, &back, &err), 0);
    ck_assert_str_eq(back.json, plan.json);
    ck_assert_str_eq(back.candidates, "table");
    ck_assert_uint_eq(back.rank_count, 2);
    ck_assert_uint_eq(back.hashes[1], hashes[1]);
    ck_assert_double_eq(back.compute_s[1], compute_s[1]);
    store_plan_finish(&back);
    job.epoch = 4;
    ck_assert_int_eq(store_read_plan(store, &job, &back, &err), 0);
    ck_assert_ptr_null(back.json);
}
END_TEST

START_TEST(plans_of_epochs_that_are_over_are_not_kept)
{
    uint64_t hash = 1;
    struct store_plan plan = {(char *)"{}", (char *)"table", &hash, 1, NULL}, back;
    struct job job = job_make(1, NULL, 0), other = job_make(2, NULL, 0);
    reopen();
    other.epoch = 1;
    store_put_plan(store, &other, "p-1", &plan);
    for (job.epoch = 1; job.epoch < 4; job.epoch++)
        store_put_plan(store, &job, "p-1", &plan);
    ck_assert_int_eq(store_commit(store, &err), 0);
    for (job.epoch = 1; job.epoch < 4; job.epoch++) {
        ck_assert_int_eq(store_read_plan(store, &job, &back, &err), 0);
        ck_assert((back.json != NULL) == (job.epoch == 3));
        store_plan_finish(&back);
    }
    ck_assert_int_eq(store_read_plan(store, &other, &back, &err), 0);
    ck_assert_str_eq(back.json, "{}");
    store_plan_finish(&back);
}
END_TEST

static int keep_worker(void *data, const struct worker *worker, struct error *words)
{
    (void)words;
    *(struct worker **)data = worker_copy(worker);
    return 0;
}

START_TEST(a_worker_comes_back_with_its_report_and_its_past)
{
    struct hardware_report *report = hardware_report_create("node-a", "host-1", "EPYC", "0-3");
    hardware_report_add_device(
        report,
        &(struct hardware_device){.name = "EPYC", .cpuset = "0", .cores = 1, .memory_bytes = 1});
    struct worker worker = {.name = "node-a",
                            .instance = 7,
                            .past = {5, 3},
                            .report = report,
                            .dead = true,
                            .lost_ms = 12,
                            .draining = true,
                            .drain_reason = "fans"},
                  *back = NULL;
    reopen();
    store_put_worker(store, &worker);
    ck_assert_int_eq(store_commit(store, &err), 0);
    reopen();
    ck_assert_msg(store_read_workers(store, keep_worker, &back, &err) == 0, "%s", err.text);
    ck_assert_ptr_nonnull(back);
    ck_assert_uint_eq(back->instance, 7);
    ck_assert_uint_eq(back->past[1], 3);
    ck_assert(back->dead && back->draining && back->lost_ms == 12);
    ck_assert_str_eq(back->drain_reason, "fans");
    ck_assert(hardware_report_equal(back->report, report));
    worker_destroy(back);
    hardware_report_destroy(report);
    store_delete_worker(store, "node-a");
    ck_assert_int_eq(store_commit(store, &err), 0);
    back = NULL;
    ck_assert_int_eq(store_read_workers(store, keep_worker, &back, &err), 0);
    ck_assert_ptr_null(back);
}
END_TEST

static int list_event(void *data, uint64_t revision, const Gimbal__Event *event)
{
    char *text = data;
    snprintf(text + strlen(text), 64 - strlen(text), "%llu%s ", (unsigned long long)revision,
             event->job);
    return 0;
}

START_TEST(events_are_chosen_by_job_kind_and_revision)
{
    static const struct {
        struct store_query query;
        const char *expected;
    } cases[] = {
        {{"", "", 0, 9, NULL, false}, "1a 2b 3a 4b 5a "},
        {{"a", "", 0, 9, NULL, false}, "1a 3a 5a "},
        {{"", "", 2, 2, NULL, false}, "3a 4b "},
        {{"", "", 0, 2, NULL, true}, "4b 5a "},
        {{"a", "n", 0, 9, NULL, false}, ""},
        {{"", "", 0, 9, "step", false}, "1a 2b 3a 5a "},
        {{"", "", 0, 2, "step", true}, "3a 5a "},
    };
    reopen();
    for (uint64_t revision = 1; revision <= 5; revision++) {
        Gimbal__Event event = GIMBAL__EVENT__INIT;
        event.job = (char *)(revision % 2 ? "a" : "b");
        event.kind = (char *)(revision == 4 ? "step" : "node-lost");
        store_put_event(store, revision, &event);
    }
    ck_assert_int_eq(store_commit(store, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64] = "";
        ck_assert_int_eq(store_read_events(store, &cases[i].query, list_event, text, &err), 0);
        ck_assert_str_eq(text, cases[i].expected);
    }
}
END_TEST

/* Commit jobs 1, 2, ... until the store fails or all are there; how many were acknowledged. */
static uint64_t commit_jobs(uint64_t count)
{
    struct job_rank ranks[2] = {{.device = {"node-a", 1, 0}}, {.device = {"node-b", 1, 0}}};
    uint64_t term, done = 0;
    if (store_open(folder, &store, &err) < 0 || store_begin_term(store, &term, &err) < 0)
        return 0;
    while (done < count) {
        struct job job = job_make(done + 1, ranks, 2);
        store_put_job(store, &job);
        if (store_commit(store, &err) < 0)
            break;
        done++;
    }
    return done;
}

/* In turn at each operation that it is about; and after it the power fails. */
START_TEST(no_commit_is_acknowledged_that_does_not_survive)
{
    const uint64_t count = 6;
    size_t at = 0, failures = 0;
    do {
        disk_clear();
        disk_plan((enum disk_fault)_i, ++at);
        uint64_t acknowledged = commit_jobs(count);
        bool failed = disk_has_failed();
        bool fits = _i == DISK_FULL && acknowledged == count; /* in what the log has already */
        if (failed && store && !fits)
            ck_assert_int_lt(store_commit(store, &err), 0); /* and never again */
        failures += failed ? 1 : 0;
        store_close(store);
        store = NULL;
        disk_lose_power();
        ck_assert_msg(store_open(folder, &store, &err) == 0, "operation %zu: %s", at, err.text);
        for (uint64_t number = 1; number <= acknowledged; number++) {
            struct job *back = job_back(number);
            ck_assert_msg(back, "operation %zu: job %lu is lost", at, (unsigned long)number);
            ck_assert_uint_eq(back->rank_count, 2);
            job_destroy(back);
        }
        store_close(store);
        store = NULL;
        if (!failed)
            break;
        ck_assert(fits || acknowledged < count);
    } while (at < 1000);
    ck_assert_uint_ge(failures, _i == DISK_SYNC_FAILS ? 6 : 12);
    ck_assert_uint_lt(at, 1000);
}
END_TEST

/* Commit one more job, with a long text, which has to succeed. */
static void commit_job(uint64_t number)
{
    static char text[100000];
    struct job job = job_make(number, NULL, 0);
    memset(text, '#', sizeof text - 1);
    job.text = text;
    store_put_job(store, &job);
    ck_assert_msg(store_commit(store, &err) == 0, "job %lu: %s", (unsigned long)number, err.text);
}

START_TEST(a_full_disk_is_told_before_anything_is_lost_and_may_have_room_again)
{
    enum store_room room, before = STORE_ROOM_ENOUGH;
    uint64_t number = 0, now_ms = 10000;
    reopen();
    ck_assert_int_eq(store_room(store, now_ms, &err), STORE_ROOM_ENOUGH);
    ck_assert(store_room_next_ms(store) == UINT64_MAX);
    disk_plan(DISK_FULL, 1);
    while ((room = store_room(store, now_ms, &err)) != STORE_ROOM_NONE) {
        ck_assert_int_ge(room, before);
        before = room;
        commit_job(++number);
    }
    ck_assert_int_eq(before, STORE_ROOM_LITTLE);
    ck_assert_ptr_nonnull(strstr(err.text, "no space is left on the disk of "));
    ck_assert_ptr_nonnull(strstr(err.text, folder));
    commit_job(++number); /* what was under way */
    now_ms = store_room_next_ms(store);
    ck_assert_int_eq(store_room(store, now_ms, &err), STORE_ROOM_NONE);
    disk_plan(DISK_WELL, 0);
    now_ms = store_room_next_ms(store);
    ck_assert_int_eq(store_room(store, now_ms, &err), STORE_ROOM_ENOUGH);
    commit_job(++number);
    store_close(store);
    store = NULL;
    disk_lose_power();
    reopen();
    for (uint64_t i = 1; i <= number; i += 10)
        job_destroy(job_back(i));
    uint64_t next;
    ck_assert_int_eq(store_next_number(store, &next, &err), 0);
    ck_assert_uint_eq(next, number + 1);
}
END_TEST

/* A disk that lies about its syncs is found out: then this test's disk would be no judge. */
START_TEST(the_disk_of_these_tests_forgets_what_was_not_synced)
{
    disk_plan(DISK_DIES, 40);
    ck_assert_uint_eq(commit_jobs(6), 6);
    ck_assert(disk_has_failed());
    store_close(store);
    store = NULL;
    disk_lose_power();
    ck_assert_int_eq(store_open(folder, &store, &err), 0);
    ck_assert_ptr_null(job_back(6));
}
END_TEST

static void change(const char *sql)
{
    char *path = xasprintf("%s/store.db", folder);
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    free(path);
}

static void refuses(int rc, const char *words)
{
    ck_assert_int_eq(store_open(folder, &store, &err), rc);
    ck_assert_msg(strstr(err.text, words) && strstr(err.text, folder), "%s", err.text);
}

START_TEST(a_store_of_a_newer_release_is_refused)
{
    reopen();
    store_close(store);
    store = NULL;
    change("PRAGMA user_version = 1000");
    refuses(-EPROTO, "a newer release has written it: its schema is 1000");
}
END_TEST

static int no_job_cb(void *data, const struct job *job, struct error *error)
{
    (void)data;
    (void)error;
    ck_abort_msg("%s was read", job->id);
}

START_TEST(a_word_that_means_nothing_is_refused)
{
    struct job job = job_make(1, NULL, 0);
    reopen();
    store_put_job(store, &job);
    ck_assert_int_eq(store_commit(store, &err), 0);
    store_close(store);
    change("UPDATE jobs SET state = 'DREAMING'");
    store = NULL;
    reopen();
    ck_assert_int_eq(store_read_jobs(store, 0, no_job_cb, NULL, &err), -EPROTO);
    ck_assert_str_eq(err.text, "j-1: 'DREAMING' means nothing to this release");
}
END_TEST

START_TEST(tokens_and_credentials_come_back_as_they_were)
{
    struct identity_token token = {.id = "0123456789abcdef",
                                   .role = IDENTITY_USER,
                                   .name = "ada",
                                   .issued_ms = 1763766000000,
                                   .expires_ms = 1763766000001,
                                   .uses_left = 3};
    struct identity_credential credential = {
        .role = IDENTITY_WORKER, .name = "node-a", .issued_ms = 5, .revoked_ms = 7};
    struct identity *identity = identity_create();
    memset(token.hash, 0xa5, sizeof token.hash);
    memset(credential.hash, 0x5a, sizeof credential.hash);
    reopen();
    store_put_token(store, &token);
    store_put_credential(store, &credential);
    token.uses_left = 2; /* the newest is what counts */
    store_put_token(store, &token);
    ck_assert_int_eq(store_commit(store, &err), 0);
    reopen();
    ck_assert_msg(store_read_identity(store, identity, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(identity_token_count(identity), 1);
    ck_assert_uint_eq(identity_credential_count(identity), 1);
    ck_assert_mem_eq(identity_token_at(identity, 0), &token, sizeof token);
    ck_assert_mem_eq(identity_credential_at(identity, 0), &credential, sizeof credential);
    identity_destroy(identity);
}
END_TEST

SUITE(store)
{
    TCase *tcase = tcase_create("store");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_job_comes_back_as_it_was);
    tcase_add_test(tcase, the_files_that_a_job_read_come_back);
    tcase_add_test(tcase, tokens_and_credentials_come_back_as_they_were);
    tcase_add_test(tcase, what_was_not_committed_is_forgotten);
    tcase_add_test(tcase, terms_grow_and_the_cluster_stays);
    tcase_add_test(tcase, old_jobs_that_ended_are_not_read_but_found_by_key);
    tcase_add_test(tcase, a_plan_belongs_to_its_epoch);
    tcase_add_test(tcase, plans_of_epochs_that_are_over_are_not_kept);
    tcase_add_test(tcase, a_worker_comes_back_with_its_report_and_its_past);
    tcase_add_test(tcase, events_are_chosen_by_job_kind_and_revision);
    tcase_add_loop_test(tcase, no_commit_is_acknowledged_that_does_not_survive, DISK_WRITE_FAILS,
                        DISK_DIES);
    tcase_add_test(tcase, a_full_disk_is_told_before_anything_is_lost_and_may_have_room_again);
    tcase_add_test(tcase, the_disk_of_these_tests_forgets_what_was_not_synced);
    tcase_add_test(tcase, a_store_of_a_newer_release_is_refused);
    tcase_add_test(tcase, a_word_that_means_nothing_is_refused);
    return suite_run("store", tcase, NULL);
}
