/* test_trail.c - what one side writes the other reads, whatever the writer is at. */
#include "worker/trail/trail.h"

#include "common/base/text.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CALLS 200000

static struct trail *mine, *theirs;
static struct trail_position at;
static atomic_bool over;
static unsigned awaited; /* by a call that waits for another track */

static void set_up(void)
{
    int fd;
    ck_assert_int_eq(trail_create(&theirs, &fd, NULL), 0);
    ck_assert_int_eq(trail_open(fd, &mine, NULL), 0);
    close(fd);
}

static void tear_down(void)
{
    trail_close(mine);
    trail_close(theirs);
}

static void enter(unsigned track, enum trail_kind kind, uint64_t number)
{
    struct trail_call call = {
        .kind = kind, .group = 5, .number = number, .entered_ms = number, .awaited = awaited};
    snprintf(call.name, sizeof call.name, "call %llu", (unsigned long long)number);
    trail_enter(mine, track, &call);
}

START_TEST(the_newest_call_is_read_and_whom_it_waits_for)
{
    ck_assert(!trail_read(theirs, &at));
    enter(0, TRAIL_EXCHANGES, 1);
    trail_await(3);
    ck_assert(trail_read(theirs, &at));
    ck_assert(at.inside);
    ck_assert_int_eq(at.peer, 3);
    ck_assert_str_eq(at.call.name, "call 1");
    trail_await(-1);
    trail_leave(mine, 0, 99);
    trail_await(4); /* of no call */
    ck_assert(trail_read(theirs, &at));
    ck_assert(!at.inside);
    ck_assert_int_eq(at.peer, -1);
    ck_assert_uint_eq(at.call.entered_ms, 99);
    ck_assert_uint_eq(at.past_count, 1);
    ck_assert_uint_eq(at.past[0].number, 1);
}
END_TEST

START_TEST(a_track_that_waits_for_another_is_where_that_one_is)
{
    awaited = (unsigned)_i;
    enter(0, TRAIL_AWAITS, 1);
    ck_assert(trail_read(theirs, &at));
    ck_assert_int_eq(at.call.kind, TRAIL_AWAITS);
    enter(TRAIL_TRACKS - awaited, TRAIL_EXCHANGES, 4); /* not this one */
    enter(awaited, TRAIL_EXCHANGES, 2);
    ck_assert(trail_read(theirs, &at));
    ck_assert_str_eq(at.call.name, "call 2");
    enter(0, TRAIL_COMPUTES, 3);
    ck_assert(trail_read(theirs, &at));
    ck_assert_str_eq(at.call.name, "call 3");
    ck_assert_uint_eq(at.past_count, 2); /* of the other tracks */
}
END_TEST

static void *write_all(void *unused)
{
    (void)unused;
    for (uint64_t i = 1; i <= CALLS; i++) {
        enter(0, TRAIL_EXCHANGES, i);
        trail_leave(mine, 0, i);
    }
    atomic_store(&over, true);
    return NULL;
}

START_TEST(what_is_read_beside_the_writing_is_whole)
{
    pthread_t thread;
    char name[TRAIL_NAME_SIZE];
    atomic_store(&over, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, write_all, NULL), 0);
    while (!atomic_load(&over)) {
        if (!trail_read(theirs, &at))
            continue;
        snprintf(name, sizeof name, "call %llu", (unsigned long long)at.call.number);
        ck_assert_str_eq(at.call.name, name);
        for (size_t i = 1; i < at.past_count; i++)
            ck_assert_uint_eq(at.past[i].number + 1, at.past[i - 1].number);
    }
    pthread_join(thread, NULL);
    ck_assert(trail_read(theirs, &at));
    ck_assert_uint_eq(at.call.number, CALLS);
}
END_TEST

START_TEST(without_a_trail_and_with_another_file_nothing_breaks)
{
    struct trail *other;
    struct error err;
    const struct trail_call call = {.number = 1};
    trail_enter(NULL, 0, &call);
    trail_await(1);
    trail_leave(NULL, 0, 1);
    ck_assert_int_lt(trail_open(STDIN_FILENO, &other, &err), 0);
    ck_assert_msg(strstr(err.text, "no trail") != NULL, "%s", err.text);
}
END_TEST

START_TEST(what_a_broken_process_leaves_is_read_as_something)
{
    int fd;
    struct trail *broken;
    ck_assert_int_eq(trail_create(&broken, &fd, NULL), 0);
    size_t size = (size_t)lseek(fd, 0, SEEK_END);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    memset(page, 0xff, size);
    ck_assert(trail_read(broken, &at));
    ck_assert_ptr_nonnull(memchr(at.call.name, '\0', sizeof at.call.name));
    ck_assert(text_valid(at.call.name));
    ck_assert_uint_le(at.past_count, TRAIL_PAST_MAX);
    munmap(page, size);
    trail_close(broken);
    close(fd);
}
END_TEST

SUITE(trail)
{
    TCase *tcase = tcase_create("trail");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_newest_call_is_read_and_whom_it_waits_for);
    tcase_add_loop_test(tcase, a_track_that_waits_for_another_is_where_that_one_is, 1,
                        TRAIL_TRACKS);
    tcase_add_test(tcase, what_is_read_beside_the_writing_is_whole);
    tcase_add_test(tcase, without_a_trail_and_with_another_file_nothing_breaks);
    tcase_add_test(tcase, what_a_broken_process_leaves_is_read_as_something);
    return suite_run("trail", tcase, NULL);
}
