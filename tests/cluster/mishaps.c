/* mishaps.c - see mishaps.h. */
#include "tests/cluster/mishaps.h"

#include "tests/cluster/trio.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[TRIO_NODES] = {"node-a", "node-b", "node-c"};
static pid_t rival;

/* 0: it has none at the moment. */
static pid_t executor_of(int node)
{
    return trio.away[node] ? 0 : command_child(trio.workers[node].pid);
}

static void signal_executor(int victim, int signal)
{
    pid_t executor = executor_of(victim);
    if (executor > 0)
        kill(executor, signal);
}

static void kill_executor(int victim)
{
    signal_executor(victim, SIGKILL);
}

static void crash_executor(int victim)
{
    signal_executor(victim, SIGSEGV);
}

/* Without an end: whoever watches it has to find out. */
static void stop_executor(int victim)
{
    signal_executor(victim, SIGSTOP);
}

static void kill_two_executors(int victim)
{
    kill_executor(victim);
    kill_executor((victim + 1) % TRIO_NODES);
}

/* It is back at once, before anybody has got over the loss. */
static void kill_worker(int victim)
{
    ck_assert_int_eq(kill(trio.workers[victim].pid, SIGKILL), 0);
    trio_collect_worker(victim, 128 + SIGKILL);
    trio_start_worker(victim);
}

/* Silent for so long that it is given up; then it goes on as if nothing had been. */
static void stop_worker(int victim)
{
    char words[32];
    snprintf(words, sizeof words, "%s lost", names[victim]);
    ck_assert_int_eq(kill(trio.workers[victim].pid, SIGSTOP), 0);
    trio_await(words);
    ck_assert_int_eq(kill(trio.workers[victim].pid, SIGCONT), 0);
}

/* Silent for the rest of the job, with its executor. */
static void stop_worker_for_good(int victim)
{
    signal_executor(victim, SIGSTOP);
    ck_assert_int_eq(kill(trio.workers[victim].pid, SIGSTOP), 0);
}

/* It learns that it was given up, and is another worker from there on. */
static void wake_worker(int victim)
{
    ck_assert_int_eq(kill(trio.workers[victim].pid, SIGCONT), 0);
    signal_executor(victim, SIGCONT);
}

/* The kernel ends the connection, at both sides, under the process. */
static void cut_socket(int process, int number)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    int fd = (int)syscall(SYS_pidfd_getfd, process, number, 0);
    if (fd < 0)
        return; /* closed meanwhile, as it may be */
    if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.ss_family == AF_INET)
        shutdown(fd, SHUT_RDWR);
    close(fd);
}

/* All that the process has made by TCP; it may make others. */
static void cut_connections(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *directory = opendir(path);
    int process = pidfd_open(pid, 0);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (entry->d_name[0] != '.')
            cut_socket(process, atoi(entry->d_name));
    if (directory)
        closedir(directory);
    if (process >= 0)
        close(process);
}

/* Between ranks. */
static void cut_executor(int victim)
{
    pid_t executor = executor_of(victim);
    if (executor > 0)
        cut_connections(executor);
}

static void cut_worker(int victim)
{
    cut_connections(trio.workers[victim].pid);
}

static void kill_coordinator(int victim)
{
    (void)victim;
    cluster_kill(&trio.cluster);
    cluster_restart(&trio.cluster, NULL);
}

/* The next coordinator never saw the worker that it waits for. */
static void kill_coordinator_and_worker(int victim)
{
    cluster_kill(&trio.cluster);
    ck_assert_int_eq(kill(trio.workers[victim].pid, SIGKILL), 0);
    trio_collect_worker(victim, 128 + SIGKILL);
    cluster_restart(&trio.cluster, NULL);
    trio_start_worker(victim);
}

static void run(const char *verb, const char *node)
{
    static struct command command;
    command_start(&command, (const char *const[]){GIMBAL, verb, node, NULL});
    int code = command_finish(&command);
    ck_assert_msg(code == 0, "%s %s: %d: %s", verb, node, code, command.err);
}

static void drain(int victim)
{
    run("drain", names[victim]);
}

static void undrain(int victim)
{
    run("undrain", names[victim]);
}

static void leave(int victim)
{
    ck_assert_int_eq(kill(trio.workers[victim].pid, SIGTERM), 0);
    trio_collect_worker(victim, 0);
}

static void leave_for_a_while(int victim)
{
    leave(victim);
    trio_start_worker(victim);
}

/* No file of its executor may grow any more. */
static void fill_disk(int victim)
{
    const struct rlimit none = {1, RLIM_INFINITY};
    pid_t executor = executor_of(victim);
    if (executor > 0)
        prlimit(executor, RLIMIT_FSIZE, &none, NULL);
}

/* Somebody computes on its cores, and it has half of them. */
static void slow_down(int victim)
{
    cpu_set_t cores;
    pid_t executor = executor_of(victim);
    if (executor <= 0 || sched_getaffinity(executor, sizeof cores, &cores) < 0)
        return;
    rival = check_fork();
    if (rival == 0) {
        sched_setaffinity(0, sizeof cores, &cores);
        for (volatile unsigned long i = 0;; i++)
            ;
    }
}

static void speed_up(int victim)
{
    (void)victim;
    if (rival > 0) {
        kill(rival, SIGKILL);
        waitpid(rival, NULL, 0);
    }
    rival = 0;
}

const struct mishap mishaps[] = {
    {"executor-killed", NULL, kill_executor, NULL},
    {"executor-crashed", NULL, crash_executor, NULL},
    {"executor-stopped", NULL, stop_executor, NULL},
    {"two-executors-killed", NULL, kill_two_executors, NULL},
    {"worker-killed", NULL, kill_worker, NULL},
    {"worker-stopped", NULL, stop_worker, NULL},
    {"worker-stopped-for-good", NULL, stop_worker_for_good, wake_worker},
    {"executor-cut-off", NULL, cut_executor, NULL},
    {"worker-cut-off", NULL, cut_worker, NULL},
    {"worker-left", NULL, leave_for_a_while, NULL},
    {"coordinator-killed", NULL, kill_coordinator, NULL},
    {"coordinator-and-worker-killed", NULL, kill_coordinator_and_worker, NULL},
    {"node-joined", leave, trio_start_worker, NULL},
    {"node-drained", NULL, drain, undrain},
    {"disk-full", NULL, fill_disk, NULL},
    {"node-slow", NULL, slow_down, speed_up},
};
const size_t mishap_count = sizeof mishaps / sizeof *mishaps;
