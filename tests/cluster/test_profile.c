/* test_profile.c - this machine is measured once, and then planned for as it was measured. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/hardware/hardware.h"
#include "common/profile/profile.h"
#include "tests/cluster/command.h"
#include "tests/cluster/real_cluster.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT "using this machine's measurements from "

static char kept[64], folder[64], cache[96], job[96];
static struct command command;

static int run(const char *const *words)
{
    command_start(&command, words);
    return command_finish(&command);
}
#define RUN(...) run((const char *const[]){GIMBAL, __VA_ARGS__, NULL})

static void expect(int code, int wanted)
{
    ck_assert_msg(code == wanted, "%d, not %d: %s%s", code, wanted, command.out, command.err);
}

static void expect_words(const char *words, bool wanted)
{
    ck_assert_msg((strstr(command.err, words) != NULL) == wanted, "'%s': %s", words, command.err);
}

/* Once for all cases: each begins with a copy of what is kept. */
static void measure(void)
{
    strcpy(kept, "/tmp/gimbal-profiles-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(kept));
    setenv("GIMBAL_EXECUTOR", EXECUTOR, 1);
    setenv("GIMBAL_PROFILE_CACHE", kept, 1);
    expect(RUN("profile", "run", "--local", "1"), 0);
    ck_assert_msg(strstr(command.out, "MEASURED") != NULL, "%s", command.out);
    ck_assert_str_eq(command.err, "");
}

static void remove_folder(const char *path)
{
    char *remove = xasprintf("rm -rf '%s'", path);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}

static void forget(void)
{
    remove_folder(kept);
}

static void setup(void)
{
    strcpy(folder, "/tmp/gimbal-profile-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/cache", folder);
    snprintf(job, sizeof job, "%s/job.yaml", folder);
    setenv("GIMBAL_PROFILE_CACHE", cache, 1);
    char *copy = xasprintf("cp -r '%s' '%s'", kept, cache);
    ck_assert_int_eq(system(copy), 0);
    free(copy);
    command_write_text(folder);
    FILE *file = fopen(job, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: gimbal/v1\nname: small\n"
            "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}\n"
            "data: {text: ['%s/text']}\n"
            "train: {steps: 2, global_batch: 8, lr: 0.001}\n",
            folder);
    ck_assert_int_eq(fclose(file), 0);
}

static void teardown(void)
{
    remove_folder(folder);
}

/* Columns of the line of `profile show` behind the head; yours. */
static char *shown(void)
{
    expect(RUN("profile", "show", "--no-headers"), 0);
    return xstrdup(command.out);
}

START_TEST(a_machine_is_measured_once)
{
    char *first = shown();
    expect(RUN("plan", "--local", "1", "-f", job), 0);
    expect_words(KEPT, true);
    expect(RUN("plan", "explain", "--local", "1", "-f", job), 0);
    expect_words(KEPT, true);
    expect(RUN("plan", "show", "--local", "1", "-f", job), 0);
    expect_words(KEPT, true);
    expect(RUN("train", "--local", "1", "-f", job, "--checkpoint", "none", "--quiet"), 0);
    ck_assert_str_eq(command.err, "");
    char *again = shown();
    ck_assert_str_eq(again, first);
    expect(RUN("train", "--local", "1", "-f", job, "--measure", "--dry-run"), 0);
    expect_words(KEPT, false);
    free(again);
    again = shown();
    ck_assert_str_ne(again, first);
    free(again);
    free(first);
}
END_TEST

START_TEST(measure_goes_with_local)
{
    expect(RUN("plan", "--measure", "-f", job), 64);
    expect_words("--measure needs --local", true);
    expect(RUN("plan", "explain", "--measure", "-f", job), 64);
    expect_words("--measure needs --local", true);
    expect(RUN("plan", "show", "--measure", "-f", job), 64);
    expect_words("--measure needs --local", true);
    expect(RUN("profile"), 64);
    expect_words("needs a subcommand: run or show", true);
    expect(RUN("profile", "show", "node-a", "--local", "1"), 64);
    expect_words("not both", true);
    expect(RUN("profile", "show", "--timeout", "1s"), 64);
    expect_words("a coordinator is asked for a NODE", true);
}
END_TEST

/* Elsewhere plans are made for the machine from the file, as they are here. */
START_TEST(what_was_measured_is_planned_for_from_a_file)
{
    char *file = xasprintf("%s/there.json", folder);
    expect(RUN("profile", "show", "--local", "1", "-o", file), 0);
    expect(RUN("profile", "show", "--local", "64"), 65);
    expect_words("'gimbal profile run --local 64' measures it", true);
    expect(RUN("plan", "--local", "1", "-f", job), 0);
    expect_words(KEPT, true);
    char *plans = xstrdup(strstr(command.out, " pp1 ")); /* behind its name, and the devices' */
    setenv("GIMBAL_PROFILE_CACHE", "/proc/nonexistent", 1);
    expect(RUN("plan", "--cluster", file, job), 0);
    ck_assert_str_eq(strstr(command.out, " pp1 "), plans);
    free(plans);
    free(file);
}
END_TEST

static void spoil(const char *how)
{
    char *words = xasprintf("%s '%s'/*.json", how, cache);
    ck_assert_int_eq(system(words), 0);
    free(words);
}

START_TEST(a_damaged_file_is_named_and_measured_anew)
{
    spoil("truncate -s 50");
    expect(RUN("plan", "--local", "1", "-f", job), 0);
    expect_words(cache, true);
    expect_words("; measured anew\n", true);
    expect(RUN("plan", "--local", "1", "-f", job), 0);
    expect_words(KEPT, true);
    spoil("sed -i 's/\"host\": \"/\"host\": \"x/'");
    expect(RUN("profile", "show"), 65); /* another machine's */
    expect(RUN("plan", "--local", "1", "-f", job), 0);
    expect_words("is a measurement of something else; measured anew\n", true);
    spoil("truncate -s 50");
    expect(RUN("profile", "show"), 65);
    expect_words("is no measurement", true);
}
END_TEST

START_TEST(where_nothing_can_be_kept_plans_are_made_all_the_same)
{
    struct error err;
    remove_folder(cache);
    ck_assert_int_eq(file_write(cache, "a file in the folder's place", 0600, &err), 0);
    expect(RUN("plan", "--local", "1", "-f", job), 0);
    expect_words("what was measured is not kept: ", true);
    expect(RUN("profile", "run"), 74);
    expect_words("what was measured is not kept: ", true);
}
END_TEST

/* The user's folder, where no other is named. */
START_TEST(it_is_kept_in_the_users_folder_for_what_can_be_made_again)
{
    char *home = xasprintf("%s/home", folder), *place = xasprintf("%s/cache", home);
    unsetenv("GIMBAL_PROFILE_CACHE");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", home, 1);
    expect(RUN("profile", "show"), 65);
    char *words = xasprintf("'%s/.cache/gimbal' has nothing", home);
    expect_words(words, true);
    free(words);
    setenv("XDG_CACHE_HOME", place, 1);
    expect(RUN("profile", "show"), 65);
    words = xasprintf("'%s/gimbal' has nothing", place);
    expect_words(words, true);
    free(words);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    expect(RUN("profile", "show"), 78);
    free(place);
    free(home);
}
END_TEST

START_TEST(a_node_tells_what_it_was_measured_to_do)
{
    struct cluster cluster;
    char profile[] = "{\"rates\":{},\"seconds_per_flop\":2e-11,\"seconds_per_byte\":1e-10,"
                     "\"overhead_s\":5e-6,\"host\":{\"latency_s\":1e-5,\"seconds_per_byte\":2e-10},"
                     "\"network\":{\"latency_s\":1e-5,\"seconds_per_byte\":2e-10},"
                     "\"overlap\":1.25}";
    char name[] = "cores", cpuset[] = "0-3";
    const struct hardware_device device = {.kind = HARDWARE_CPU,
                                           .name = name,
                                           .cpuset = cpuset,
                                           .cores = 4,
                                           .memory_bytes = 1ull << 30,
                                           .profile = profile};
    cluster_start(&cluster, NULL);
    setenv("GIMBAL_ADDRESS", cluster.address, 1);
    cluster_worker_of(&cluster, "node-a", &device, 2);
    expect(RUN("profile", "show", "node-a", "--no-headers"), 0);
    ck_assert_str_eq(command.out, "node-a  0  0-3  -  50.0  -  10.0  10.0 us  5.0\n"
                                  "node-a  1  0-3  -  50.0  -  10.0  10.0 us  5.0\n");
    expect(RUN("profile", "show", "node-a", "-o", "jsonl"), 0);
    json_t *node = json_loads(command.out, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(
                         json_array_get(json_object_get(node, "devices"), 1), "profile")),
                     profile);
    json_decref(node);
    expect(RUN("profile", "show", "node-b"), 65);
    cluster_stop(&cluster);
}
END_TEST

SUITE(profile_command)
{
    TCase *tcase = tcase_create("profile command");
    tcase_add_unchecked_fixture(tcase, measure, forget);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, a_machine_is_measured_once);
    tcase_add_test(tcase, measure_goes_with_local);
    tcase_add_test(tcase, what_was_measured_is_planned_for_from_a_file);
    tcase_add_test(tcase, a_damaged_file_is_named_and_measured_anew);
    tcase_add_test(tcase, where_nothing_can_be_kept_plans_are_made_all_the_same);
    tcase_add_test(tcase, it_is_kept_in_the_users_folder_for_what_can_be_made_again);
    tcase_add_test(tcase, a_node_tells_what_it_was_measured_to_do);
    return suite_run("profile command", tcase, NULL);
}
