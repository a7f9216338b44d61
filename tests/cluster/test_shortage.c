/* test_shortage.c - real processes: a node has less memory than it says. The job that runs out of
 * it there is planned again with less, recomputes, and trains to its end: whether a rank cannot
 * reserve what its plan wants, or the kernel kills it once it uses that. */
#include "common/base/memory.h"
#include "tests/cluster/limited.h"
#include "tests/cluster/memory_group.h"
#include "tests/cluster/pair.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024
#define MIB (UINT64_C(1024) * KIB)
/* Without recomputing a rank takes 600 MiB, and 160 with it. So much less than the first needs:
 * more than kernels' libraries take later, so that the reservation is what fails. */
#define SHORT (300 * MIB)
#define STEPS 3

static struct command events;

/* One for each executor: what libraries take grows with their threads. */
static void keep_to_two_cores(void)
{
    cpu_set_t cores;
    int kept = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof cores, &cores), 0);
    for (size_t core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &cores) && ++kept > PAIR_NODES)
            CPU_CLR(core, &cores);
    ck_assert_int_eq(sched_setaffinity(0, sizeof cores, &cores), 0);
}

static void set_up(void)
{
    keep_to_two_cores();
    pair.memory = "1GiB";
    pair.executors[1] = limited_begin("ulimit -d ");
    pair_start();
}

static void tear_down(void)
{
    pair_stop();
    limited_end();
}

/* Either all of its blocks recompute, or none. */
static void submit(int steps)
{
    FILE *file = fopen(pair.job_path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: gimbal/v1\n"
            "name: large\n"
            "model: {family: gpt, layers: 8, hidden: 64, heads: 4, seq: 256}\n"
            "data: {text: ['%s/text']}\n"
            "train: {steps: %d, global_batch: 128, lr: 0.001}\n"
            "devices: {min: 2}\n"
            "plan: {search: uniform, pin: {dp: 2, micro_batches: 1},\n"
            "       forbid: {recompute: [selective]}}\n",
            pair.folder, steps);
    ck_assert_int_eq(fclose(file), 0);
    pair_submit(&events);
}

/* Of the process, as its status has it. */
static uint64_t read_bytes(pid_t pid, const char *name)
{
    char path[64], line[128];
    uint64_t kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            kib = strtoull(line + strlen(name) + 1, NULL, 10);
    fclose(file);
    ck_assert_msg(kib > 0, "%s has no %s", path, name);
    return kib * KIB;
}

static void limit_data(uint64_t bytes)
{
    limited_set(bytes / KIB);
}

/* How node-b comes to have too little, known from what an executor there had. */
static const struct shortage {
    const char *name;
    const char *of; /* in its status */
    void (*limit)(uint64_t bytes);
    const char *words; /* of the rank that ran out */
} shortages[] = {
    {"a rank that cannot reserve", "VmData", limit_data, ": cannot reserve memory: state "},
    {"a rank that the kernel kills", "RssAnon", memory_group_limit,
     ": the executor was killed by signal 9 (Killed), by the kernel for memory (oom_kill "},
};
enum { RESERVES, KILLED };

START_TEST(a_node_with_less_memory_than_it_says_is_planned_with_less)
{
    const struct shortage *shortage = &shortages[_i];
    if (_i == KILLED) {
        const char *why_not = memory_group_open();
        ck_assert_msg(why_not == NULL, "%s", why_not);
        memory_group_take(pair.workers[1].pid);
    }
    submit(PAIR_ENDLESS);
    pair_await(&events, "\"event\":\"step\"");
    uint64_t bytes = read_bytes(command_child(pair.workers[1].pid), shortage->of);
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1", "--reason", "seen enough"), 0);
    command_finish(&events);
    ck_assert_uint_gt(bytes, SHORT);
    printf("%s: %s of %" PRIu64 " MiB\n", shortage->name, shortage->of, bytes / MIB);
    shortage->limit(bytes - SHORT);
    submit(STEPS);
    pair_await(&events, " on node-b/0 ran out of memory");
    pair_await(&events, ", and is planned with at most ");
    pair_await(&events, shortage->words);
    pair_await(&events, "recompute");
    int status = command_finish(&events);
    ck_assert_msg(status == 0, "%s: %d: %s", shortage->name, status, command_last(&events));
    if (_i == KILLED)
        memory_group_limit(16 * bytes);
}
END_TEST

static void tear_down_group(void)
{
    tear_down();
    ck_assert(memory_group_close());
}

/* Why it cannot be had here; NULL: it can. */
static const char *not_limited(void)
{
#ifdef __SANITIZE_ADDRESS__
    return "a sanitizer has the allocator, and ends a process that has no more data";
#else
    return NULL;
#endif
}

static const char *not_killed(void)
{
    const char *why_not = memory_group_open();
    if (!why_not)
        memory_group_close();
    return why_not;
}

static void add(TCase *tcase, int shortage, const char *why_not)
{
    tcase_set_timeout(tcase, 300);
    if (why_not)
        suite_skip(shortages[shortage].name, why_not);
    else
        tcase_add_loop_test(tcase, a_node_with_less_memory_than_it_says_is_planned_with_less,
                            shortage, shortage + 1);
}

SUITE(shortage)
{
    TCase *reserves = tcase_create("reserves"), *killed = tcase_create("killed");
    tcase_add_checked_fixture(reserves, set_up, tear_down);
    tcase_add_checked_fixture(killed, set_up, tear_down_group);
    add(reserves, RESERVES, not_limited());
    add(killed, KILLED, not_killed());
    return suite_run("shortage", reserves, killed, NULL);
}
