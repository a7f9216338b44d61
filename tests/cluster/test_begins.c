/* test_begins.c - a worker that is told to stop while it begins: at whichever of its system calls
 * SIGTERM comes, it leaves with 0 and says so, and no executor stays.
 *
 * The test is its tracer until then, so that an instant is a number, and the same one again is the
 * same place. A run that is left alone says how many there are. */
#include "common/base/random.h"
#include "tests/cluster/command.h"
#include "tests/cluster/real_cluster.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define INSTANTS 30 /* before its devices are measured, and as many behind that */
#define ROUNDS 10   /* of a measuring that is stopped with the worker */

static struct cluster cluster;
static char patient[80]; /* an executor that measures nothing */
static struct {
    pid_t pid;
    int words_fd;
    char words[1 << 16]; /* all that it has said */
    size_t size;
} worker;

/* Becomes the worker; waits for its tracer before that. */
static void become_worker(const char *executor, int words_fd)
{
    char state[80];
    const char *const words[] = {
        WORKER,     "--name", "node-a",     "--coordinator", cluster.address, "--devices", "1",
        "--memory", "64MiB",  "--executor", executor,        "--state",       state,       NULL};
    snprintf(state, sizeof state, "%s/state", cluster.directory);
    if (dup2(words_fd, STDERR_FILENO) >= 0 && ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
        execv(WORKER, (char **)words);
    _exit(127);
}

static void begin(const char *executor)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    worker.pid = fork();
    ck_assert_int_ge(worker.pid, 0);
    if (worker.pid == 0)
        become_worker(executor, ends[1]);
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    worker.words_fd = ends[0];
    worker.size = 0;
    int status;
    ck_assert_int_eq(waitpid(worker.pid, &status, 0), worker.pid);
    ck_assert_msg(WIFSTOPPED(status), "the worker does not begin");
    ck_assert_int_eq(
        ptrace(PTRACE_SETOPTIONS, worker.pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
}

/* Read what has come; false at the end. */
static bool listen_to(int timeout_ms)
{
    struct pollfd fd = {.fd = worker.words_fd, .events = POLLIN};
    ssize_t got = 1;
    if (poll(&fd, 1, timeout_ms) > 0) {
        ck_assert_uint_lt(worker.size, sizeof worker.words - 1);
        got = read(worker.words_fd, worker.words + worker.size,
                   sizeof worker.words - 1 - worker.size);
        worker.size += got > 0 ? (size_t)got : 0;
    }
    worker.words[worker.size] = '\0';
    return got != 0;
}

/* To the end of its next system call; its number. */
static uint64_t go_on(void)
{
    struct __ptrace_syscall_info info = {0};
    uint64_t number = 0;
    while (info.op != PTRACE_SYSCALL_INFO_EXIT) {
        int status, signal = 0;
        do {
            ck_assert_int_eq(ptrace(PTRACE_SYSCALL, worker.pid, NULL, signal), 0);
            ck_assert_int_eq(waitpid(worker.pid, &status, 0), worker.pid);
            ck_assert_msg(WIFSTOPPED(status), "the worker has ended: %s", worker.words);
            signal = WSTOPSIG(status);
        } while (signal != (SIGTRAP | 0x80));
        ptrace(PTRACE_GET_SYSCALL_INFO, worker.pid, sizeof info, &info);
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
            number = info.entry.nr;
    }
    return number;
}

/* Before that it has no say in how a signal ends it. */
static void await_signals(void)
{
    while (go_on() != SYS_signalfd4)
        continue;
}

/* Let alone with the signal, it comes to its end. */
static void stop(int instant)
{
    int status;
    ck_assert_int_eq(kill(worker.pid, SIGTERM), 0);
    ck_assert_int_eq(ptrace(PTRACE_DETACH, worker.pid, NULL, NULL), 0);
    while (listen_to(test_patience_ms(COMMAND_PATIENCE_MS)))
        continue;
    ck_assert_int_eq(waitpid(worker.pid, &status, 0), worker.pid);
    close(worker.words_fd);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "call %d: status %x: %s", instant,
                  (unsigned)status, worker.words);
    ck_assert_msg(strstr(worker.words, "asked to stop") || strstr(worker.words, "stopped before"),
                  "call %d: it does not say that it was stopped: %s", instant, worker.words);
}

/* How many calls it takes to begin: until it is registered; and how many of them to be measured. */
static int count_calls(int *measured)
{
    int calls = 0;
    *measured = 0;
    begin(FAKE_EXECUTOR);
    await_signals();
    for (; !strstr(worker.words, "registered as"); calls++) {
        go_on();
        listen_to(0);
        if (*measured == 0 && strstr(worker.words, "measuring"))
            *measured = calls;
    }
    stop(calls);
    return calls;
}

static void stop_at(int instant)
{
    begin(FAKE_EXECUTOR);
    await_signals();
    for (int call = 0; call < instant; call++)
        go_on();
    stop(instant);
}

/* Either end of the start as often as the other, however the calls are spread. */
START_TEST(a_worker_that_is_stopped_while_it_begins_leaves_with_0)
{
    int measured, calls = count_calls(&measured), instants = test_share(INSTANTS);
    for (int i = 0; i < instants; i++) {
        uint64_t index = (uint64_t)i;
        stop_at((int)random_below(test_seed(), 0, index, (uint64_t)measured));
        stop_at(measured + (int)random_below(test_seed(), 1, index, (uint64_t)(calls - measured)));
    }
    printf("%d system calls, %d of them before devices are measured\n", calls, measured);
}
END_TEST

/* As a service manager does it: all processes of the service at once, the executor first. */
START_TEST(a_worker_that_is_stopped_while_it_measures_does_not_wait_for_that)
{
    for (int round = 0; round < ROUNDS; round++) {
        begin(patient);
        await_signals();
        while (command_child(worker.pid) == 0)
            go_on();
        if (round % 2)
            kill(command_child(worker.pid), SIGTERM);
        stop(round);
        ck_assert_msg(strstr(worker.words, "stopped before its devices") != NULL, "%s",
                      worker.words);
    }
}
END_TEST

static void write_patient(void)
{
    snprintf(patient, sizeof patient, "%s/patient", cluster.directory);
    FILE *file = fopen(patient, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "#!/bin/sh\nexec sleep 600\n"), 0);
    ck_assert_int_eq(fchmod(fileno(file), 0700), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void set_up(void)
{
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    cluster_start(&cluster, NULL);
    write_patient();
}

/* Whoever outlives its parent becomes our child; all have ended, or will at once. */
static void tear_down(void)
{
    ck_assert_int_eq(unlink(patient), 0);
    cluster_stop(&cluster);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    ck_assert_int_eq(errno, ECHILD);
}

/* NULL, or why no process may be traced here: some containers forbid it. */
static const char *why_not(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? errno : 0);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return strerror(errno);
    return WIFEXITED(status) && WEXITSTATUS(status) ? strerror(WEXITSTATUS(status)) : NULL;
}

SUITE(begins)
{
    const char *reason = why_not();
    TCase *tcase = tcase_create("begins");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    if (reason) {
        suite_skip("workers that are traced", reason);
    } else {
        tcase_add_test(tcase, a_worker_that_is_stopped_while_it_begins_leaves_with_0);
        tcase_add_test(tcase, a_worker_that_is_stopped_while_it_measures_does_not_wait_for_that);
    }
    return suite_run("begins", tcase, NULL);
}
