/* test_cache.c - measurements on disk: found again, refused, forgotten, and written by many. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/profile/cache.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOW 1700000000000ull
#define DAY_MS (24 * 3600 * 1000ull)

static const struct profile_question question = {.host = "node-a",
                                                 .processor = "EPYC",
                                                 .programs = "0123456789abcdef",
                                                 .device = "cpu",
                                                 .cpusets = "0-1;2,4",
                                                 .fabric = "local",
                                                 .crowd = 1.5};

static char above[64], folder[96];
static struct error err;

static void setup(void)
{
    strcpy(above, "/tmp/gimbal-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(above));
    snprintf(folder, sizeof folder, "%s/a/b", above); /* which is made */
    err.text[0] = '\0';
}

static void teardown(void)
{
    char *remove = xasprintf("rm -rf '%s'", above);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}

/* Of two devices, which differ; as a probe sends them, in six digits. */
static void measure(struct profile profiles[2], double flop)
{
    for (int i = 0; i < 2; i++)
        profiles[i] = (struct profile){
            .rates = {{"fc1", ELEMENT_F32, {1e-6, 2e-6}, {flop, 2 * flop}}},
            .rate_count = 1,
            .seconds_per_flop = flop * (i + 1),
            .seconds_per_byte = 2.5e-10,
            .overhead_s = 4e-6,
            .host = {1e-5, 1e-9},
            .network = {1e-5, 1e-9},
            .overlap = 1.25,
        };
}

static void keep_of(const struct profile_question *of, double flop, uint64_t unix_ms, bool busy)
{
    struct profile profiles[2];
    measure(profiles, flop);
    const struct profile_answer answer = {
        .measured_unix_ms = unix_ms, .busy = busy, .count = 2, .profiles = profiles};
    ck_assert_msg(profile_cache_keep(folder, of, &answer, &err) == 0, "%s", err.text);
}

static void keep(double flop, uint64_t unix_ms)
{
    keep_of(&question, flop, unix_ms, false);
}

static void expect(double flop, uint64_t now_unix_ms)
{
    struct profile wanted[2];
    struct profile_answer answer;
    int rc = profile_cache_find(folder, &question, now_unix_ms, &answer, &err);
    ck_assert_msg(rc == 1, "%d: %s", rc, err.text);
    measure(wanted, flop);
    ck_assert_uint_eq(answer.count, 2);
    for (int i = 0; i < 2; i++)
        ck_assert(profile_equal(&answer.profiles[i], &wanted[i]));
    profile_answer_finish(&answer);
}

static void expect_nothing(const struct profile_question *of, uint64_t now_unix_ms)
{
    struct profile_answer answer;
    ck_assert_msg(profile_cache_find(folder, of, now_unix_ms, &answer, &err) == 0, "%s", err.text);
}

static void expect_words(const char *words)
{
    struct profile_answer answer;
    ck_assert_int_eq(profile_cache_find(folder, &question, NOW, &answer, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, folder) && strstr(err.text, words), "'%s' is not in: %s", words,
                  err.text);
}

/* The only file of the folder; lent until the next call. */
static const char *only_file(void)
{
    static char path[400];
    DIR *directory = opendir(folder);
    ck_assert_ptr_nonnull(directory);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    }
    closedir(directory);
    ck_assert_int_eq(count, 1);
    return path;
}

static void write_text(const char *path, const char *text)
{
    ck_assert_msg(file_write(path, text, 0600, &err) == 0, "%s", err.text);
}

START_TEST(what_was_measured_is_found_again)
{
    expect_nothing(&question, NOW);
    keep(1e-11, NOW);
    expect(1e-11, NOW);
    keep(3e-11, NOW + 1);
    expect(3e-11, NOW + 1);
    struct profile_answer answer;
    ck_assert_int_eq(profile_cache_find(folder, &question, NOW + 5, &answer, &err), 1);
    ck_assert_uint_eq(answer.measured_unix_ms, NOW + 1);
    profile_answer_finish(&answer);
}
END_TEST

START_TEST(it_is_its_owners_alone)
{
    struct stat status;
    umask(0);
    keep(1e-11, NOW);
    ck_assert_int_eq(stat(folder, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0700);
    ck_assert_int_eq(stat(only_file(), &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
}
END_TEST

/* Whatever decides a measurement. */
START_TEST(another_question_has_another_answer)
{
    struct profile_question others[7];
    for (int i = 0; i < 7; i++)
        others[i] = question;
    others[0].host = "node-b";
    others[1].processor = "Xeon";
    others[2].programs = "0123456789abcdee";
    others[3].device = "plain";
    others[4].cpusets = "0-1;2,5";
    others[5].fabric = "gloo";
    others[6].crowd = 1;
    keep(1e-11, NOW);
    for (int i = 0; i < 7; i++)
        expect_nothing(&others[i], NOW);
    for (int i = 0; i < 7; i++)
        keep_of(&others[i], 2e-11 * (i + 1), NOW, false);
    expect(1e-11, NOW);
}
END_TEST

START_TEST(a_week_is_its_life_and_of_a_busy_machine_an_hour)
{
    keep(1e-11, NOW);
    expect(1e-11, NOW + 7 * DAY_MS);
    expect_nothing(&question, NOW + 7 * DAY_MS + 1);
    expect_nothing(&question, NOW - 1); /* of another calendar */
    keep_of(&question, 2e-11, NOW, true);
    expect(2e-11, NOW + DAY_MS / 24);
    expect_nothing(&question, NOW + DAY_MS / 24 + 1);
}
END_TEST

START_TEST(a_damaged_file_is_named)
{
    static const struct {
        const char *text, *words;
    } damages[] = {
        {"", "is no measurement"},
        {"{\"kind\": \"MeasuredDevices\"", "is no measurement"},
        {"[]", "is no measurement"},
        {"{\"kind\": \"NodeList\", \"measured_unix_ms\": 1, \"busy\": false, \"question\": {}, "
         "\"profiles\": []}",
         "it is no MeasuredDevices"},
        {"{\"kind\": \"MeasuredDevices\", \"measured_unix_ms\": 1, \"busy\": false, \"question\": "
         "{}, \"profiles\": []}",
         "question: Object item not found: host"},
    };
    keep(1e-11, NOW);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        write_text(only_file(), damages[i].text);
        expect_words(damages[i].words);
    }
    keep(2e-11, NOW);
    expect(2e-11, NOW);
}
END_TEST

static void replace(const char *path, const char *what, const char *by)
{
    char *text;
    ck_assert_int_eq(file_read(path, &text, &err), 0);
    char *at = strstr(text, what);
    ck_assert_msg(at != NULL, "no '%s' in %s", what, text);
    char *other = xasprintf("%.*s%s%s", (int)(at - text), text, by, at + strlen(what));
    write_text(path, other);
    free(other);
    free(text);
}

START_TEST(numbers_that_no_device_has_are_damage)
{
    keep(1e-11, NOW);
    replace(only_file(), "\\\"overlap\\\":1.25", "\\\"overlap\\\":12.5");
    expect_words("overlap is 12.5");
}
END_TEST

START_TEST(a_profile_too_few_is_damage)
{
    keep(1e-11, NOW);
    replace(only_file(), "0-1;2,4", "0-1;2,4;6");
    expect_words("2 profiles of 3 devices");
}
END_TEST

/* By its name it is the answer, and by what is in it not. */
START_TEST(a_file_of_another_machine_is_refused)
{
    keep(1e-11, NOW);
    replace(only_file(), "node-a", "node-b");
    expect_words("is a measurement of something else");
}
END_TEST

static void grow_old(const char *path, uint64_t unix_ms)
{
    const struct timespec times[2] = {{.tv_sec = (time_t)(unix_ms / 1000)},
                                      {.tv_sec = (time_t)(unix_ms / 1000)}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

START_TEST(what_is_too_old_is_taken_away_and_nothing_else)
{
    static const char *const names[] = {"0123456789abcdef.json.77", "notes.json",
                                        "0123456789abcdef0.json", "0123456789abcdef.jsonl"};
    struct profile_question other = question;
    char path[160];
    other.host = "node-b";
    keep(1e-11, NOW);
    grow_old(only_file(), NOW);
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        write_text(path, "text");
        grow_old(path, NOW);
    }
    keep_of(&other, 1e-11, NOW + 8 * DAY_MS, false);
    expect_nothing(&question, NOW);
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        ck_assert_int_eq(access(path, F_OK), i == 0 ? -1 : 0);
    }
}
END_TEST

START_TEST(the_list_has_the_newest_first_and_damage_last)
{
    struct profile_kept *kept;
    struct profile_question other = question, old = question;
    size_t count;
    ck_assert_int_eq(profile_cache_list(folder, NOW, &kept, &count, &err), 0);
    ck_assert_uint_eq(count, 0);
    profile_cache_free(kept, count);
    other.host = "node-b";
    old.host = "node-c";
    keep(1e-11, NOW - 2);
    char *damaged = xstrdup(only_file());
    keep_of(&other, 1e-11, NOW - 1, false);
    keep_of(&old, 1e-11, NOW - 8 * DAY_MS, false);
    ck_assert_int_eq(profile_cache_list(folder, NOW, &kept, &count, &err), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(kept[0].question.host, "node-b");
    ck_assert_str_eq(kept[1].question.host, "node-a");
    ck_assert_str_eq(kept[1].question.cpusets, question.cpusets);
    ck_assert(kept[1].question.crowd == question.crowd);
    ck_assert_uint_eq(kept[1].answer.count, 2);
    profile_cache_free(kept, count);
    write_text(damaged, "?");
    ck_assert_int_eq(profile_cache_list(folder, NOW, &kept, &count, &err), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(kept[0].question.host, "node-b");
    ck_assert_ptr_null(kept[1].file);
    ck_assert_ptr_nonnull(strstr(kept[1].why.text, damaged));
    profile_cache_free(kept, count);
    free(damaged);
}
END_TEST

START_TEST(where_nothing_can_be_kept_it_says_so)
{
    struct profile profiles[2];
    measure(profiles, 1e-11);
    const struct profile_answer answer = {
        .measured_unix_ms = NOW, .count = 2, .profiles = profiles};
    char *path = xasprintf("%s/a", above);
    write_text(path, "a file in the folder's place");
    ck_assert_int_eq(profile_cache_keep(folder, &question, &answer, &err), -ENOTDIR);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    free(path);
    struct profile_question odd = question;
    odd.host = "\xff";
    ck_assert_int_eq(profile_cache_keep(above, &odd, &answer, &err), -EINVAL);
}
END_TEST

/* A process that writes until it is killed. */
static pid_t start_writer(double flop)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    while (pid == 0)
        keep(flop, NOW);
    return pid;
}

/* Whoever reads meanwhile has an answer of one of them, and none that is half of each. */
START_TEST(several_may_write_at_once)
{
    pid_t writers[3];
    int seen[4] = {0};
    keep(1e-11, NOW);
    for (int i = 0; i < 3; i++)
        writers[i] = start_writer((2 + i) * 1e-11);
    while (!(seen[1] && seen[2] && seen[3])) {
        struct profile_answer answer;
        int rc = profile_cache_find(folder, &question, NOW, &answer, &err);
        ck_assert_msg(rc == 1, "%d: %s", rc, err.text);
        double flop = answer.profiles[0].seconds_per_flop;
        ck_assert(answer.profiles[1].seconds_per_flop == 2 * flop);
        ck_assert(answer.profiles[1].rates[0].seconds_per_flop[0] == flop);
        seen[(int)(flop / 1e-11 + 0.5) - 1]++;
        profile_answer_finish(&answer);
    }
    for (int i = 0; i < 3; i++) {
        kill(writers[i], SIGKILL);
        waitpid(writers[i], NULL, 0);
    }
}
END_TEST

SUITE(cache)
{
    TCase *tcase = tcase_create("cache");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_was_measured_is_found_again);
    tcase_add_test(tcase, it_is_its_owners_alone);
    tcase_add_test(tcase, another_question_has_another_answer);
    tcase_add_test(tcase, a_week_is_its_life_and_of_a_busy_machine_an_hour);
    tcase_add_test(tcase, a_damaged_file_is_named);
    tcase_add_test(tcase, numbers_that_no_device_has_are_damage);
    tcase_add_test(tcase, a_profile_too_few_is_damage);
    tcase_add_test(tcase, a_file_of_another_machine_is_refused);
    tcase_add_test(tcase, what_is_too_old_is_taken_away_and_nothing_else);
    tcase_add_test(tcase, the_list_has_the_newest_first_and_damage_last);
    tcase_add_test(tcase, where_nothing_can_be_kept_it_says_so);
    tcase_add_test(tcase, several_may_write_at_once);
    return suite_run("cache", tcase, NULL);
}
