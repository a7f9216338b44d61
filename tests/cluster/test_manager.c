/* test_manager.c - the daemons as a service manager sees them: ready, alive, stopping. */
#include "tests/support/manager.h"
#include "tests/support/port.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#define WATCHDOG_USEC 100000
#define LISTENS "STATUS=listens at "

extern char **environ;

static struct manager manager;
static pid_t coordinator, worker;
static char address[96], state[64];

static pid_t start(const char *const *line)
{
    pid_t pid;
    ck_assert_int_eq(posix_spawn(&pid, line[0], NULL, NULL, (char *const *)line, environ), 0);
    return pid;
}

static int exit_code(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "it died of signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void start_coordinator(const char *where)
{
    coordinator = start((const char *const[]){COORDINATOR, "--address", where, "--state", state,
                                              "--checkpoints", "none", NULL});
    snprintf(address, sizeof address, "%s", manager_await(&manager, LISTENS) + strlen(LISTENS));
    address[strcspn(address, ",")] = '\0'; /* the term follows */
    manager_await(&manager, "READY=1");
}

static void stop_coordinator(void)
{
    ck_assert_int_eq(kill(coordinator, SIGTERM), 0);
    manager_await(&manager, "STOPPING=1");
    ck_assert_int_eq(exit_code(coordinator), 0);
    coordinator = 0;
}

static void set_up(void)
{
    snprintf(state, sizeof state, "/tmp/gimbal-state-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(state));
    manager_open(&manager, false, WATCHDOG_USEC);
}

static void tear_down(void)
{
    static const char *const kept[] = {"store.db", "a.coordinator", "a.lock"};
    char path[96];
    pid_t left[] = {coordinator, worker};
    for (size_t i = 0; i < 2; i++)
        if (left[i] > 0 && kill(left[i], SIGKILL) == 0)
            waitpid(left[i], NULL, 0);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        snprintf(path, sizeof path, "%s/%s", state, kept[i]);
        unlink(path);
    }
    ck_assert_int_eq(rmdir(state), 0);
    manager_close(&manager);
}

START_TEST(a_coordinator_is_ready_once_it_listens_and_gives_signs_of_life)
{
    start_coordinator("tcp://127.0.0.1:0");
    ck_assert(strncmp(address, "tcp://127.0.0.1:", 16) == 0 && strcmp(address + 16, "0") != 0);
    manager_await(&manager, "WATCHDOG=1");
    manager_await(&manager, "WATCHDOG=1");
    stop_coordinator();
}
END_TEST

START_TEST(a_worker_is_ready_without_its_coordinator_and_says_how_the_link_is)
{
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", (unsigned)port_choose(2));
    worker = start((const char *const[]){WORKER, "--name", "a", "--executor", FAKE_EXECUTOR,
                                         "--state", state, "--coordinator", address, NULL});
    ck_assert_str_eq(manager_await(&manager, "STATUS="), "STATUS=node 'a': measuring its devices");
    ck_assert_str_eq(manager_await(&manager, "STATUS="),
                     "STATUS=node 'a', executors: 0; looking for the coordinator");
    manager_await(&manager, "READY=1");
    manager_await(&manager, "WATCHDOG=1");
    manager_await(&manager, "WATCHDOG=1");

    start_coordinator(address);
    manager_await(&manager, "STATUS=node 'a', executors: 0; registered");
    ck_assert_int_eq(kill(worker, SIGTERM), 0);
    manager_await(&manager, "STATUS=node 'a', executors: 0; leaving");
    manager_await(&manager, "STOPPING=1");
    ck_assert_int_eq(exit_code(worker), 0);
    worker = 0;
    stop_coordinator();
}
END_TEST

START_TEST(a_manager_that_cannot_be_reached_stops_nobody)
{
    setenv("NOTIFY_SOCKET", "/proc/nonexistent/socket", 1);
    coordinator = start((const char *const[]){COORDINATOR, "--address", "tcp://127.0.0.1:0",
                                              "--checkpoints", "none", "--state", state,
                                              "--address-file", "/proc/nonexistent/address", NULL});
    /* It comes as far as this. */
    ck_assert_int_eq(exit_code(coordinator), EX_IOERR);
    coordinator = 0;
    ck_assert(manager_is_quiet(&manager));
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("manager");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_coordinator_is_ready_once_it_listens_and_gives_signs_of_life);
    tcase_add_test(tcase, a_worker_is_ready_without_its_coordinator_and_says_how_the_link_is);
    tcase_add_test(tcase, a_manager_that_cannot_be_reached_stops_nobody);
    return suite_run("manager", tcase, NULL);
}
