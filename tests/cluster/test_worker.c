/* test_worker.c - gimbal-worker as a process, between a coordinator and executors of ours. */
#include "common/base/clock.h"
#include "tests/cluster/coordinator.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 10000

extern char **environ;

typedef Gimbal__StoppedRequest Stopped;

static struct coordinator coordinator;
static pid_t worker;
static char state[32];

static pid_t spawn(const char *const *arguments, int output)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    if (output >= 0)
        posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    ck_assert_int_eq(posix_spawn(&pid, WORKER, &actions, NULL, (char **)arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static pid_t spawn_worker(const char *executor, int output)
{
    const char *const arguments[] = {
        WORKER,      "--name", "node-a",     "--coordinator", coordinator.address,
        "--devices", "2",      "--executor", executor,        "--state",
        state,       NULL};
    return spawn(arguments, output);
}

static void begin(void)
{
    strcpy(state, "/tmp/gimbal-worker-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(state));
    coordinator_open(&coordinator);
}

static void end(void)
{
    struct dirent *entry;
    coordinator_close(&coordinator);
    DIR *folder = opendir(state);
    ck_assert_ptr_nonnull(folder);
    while ((entry = readdir(folder))) /* what it knows of the coordinator, and its claim, by node */
        if (strstr(entry->d_name, ".coordinator") || strstr(entry->d_name, ".lock"))
            ck_assert_int_eq(unlinkat(dirfd(folder), entry->d_name, 0), 0);
    closedir(folder);
    ck_assert_int_eq(rmdir(state), 0);
}

/* A worker that is registered and follows its assignments. */
static void set_up(void)
{
    begin();
    worker = spawn_worker(FAKE_EXECUTOR, -1);
    PUMP(&coordinator, rpc_server_held_count(coordinator.server) == 1);
}

static bool is_gone(pid_t pid)
{
    return kill(pid, 0) < 0 && errno == ESRCH;
}

/* The status it ends with. */
static int collect(pid_t pid)
{
    int status = 0;
    PUMP(&coordinator, waitpid(pid, &status, WNOHANG) == pid);
    return status;
}

static void tear_down(void)
{
    if (worker > 0) {
        kill(worker, SIGKILL);
        waitpid(worker, NULL, 0);
    }
    worker = 0;
    end();
}

/* The index-th child of a process, from /proc; 0 when it has no so many. */
static pid_t child_of(pid_t parent, size_t index)
{
    char path[64];
    int child;
    pid_t found = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; fscanf(file, "%d", &child) == 1; i++)
        if (i == index)
            found = child;
    fclose(file);
    return found;
}

/* Assign a rank and let it go, until it has stepped; its process. */
static pid_t run_rank(const char *text)
{
    coordinator_assign(&coordinator, "job-1", 1, 0, 0, text);
    PUMP(&coordinator, coordinator.ready_count == 1);
    pid_t executor = child_of(worker, 0);
    ck_assert_int_gt(executor, 0);
    coordinator_go(&coordinator, "job-1", 1);
    PUMP(&coordinator, coordinator_step(&coordinator) >= 1);
    return executor;
}

static const Stopped *wait_for_stopped(size_t count)
{
    PUMP(&coordinator, coordinator.stopped_count >= count);
    ck_assert_uint_eq(coordinator.stopped_count, count);
    return coordinator.stopped[count - 1];
}

START_TEST(a_worker_registers_with_devices_that_have_profiles)
{
    ck_assert_str_eq(coordinator.report->node, "node-a");
    ck_assert_uint_eq(coordinator.report->n_devices, 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(coordinator.report->devices[i]->profile_json, "{\"fake\": 1}");
        ck_assert_uint_gt(coordinator.report->devices[i]->memory_bytes, 0);
    }
    PUMP(&coordinator, coordinator.heartbeats >= 2);
    ck_assert_str_eq(coordinator.heartbeat->node, "node-a");
    ck_assert_uint_eq(coordinator.reports, 1);
}
END_TEST

START_TEST(an_executor_meets_the_others_gets_ready_steps_and_is_done)
{
    coordinator_assign(&coordinator, "job-1", 3, 0, 0, "meet steps=5");
    coordinator_assign(&coordinator, "job-1", 3, 1, 1, "meet steps=5");
    /* Both wait for the same value, in one held call beside the watch. */
    PUMP(&coordinator, strstr(coordinator.put_keys, " rank-0 ") &&
                           strstr(coordinator.put_keys, " rank-1 ") &&
                           rpc_server_held_count(coordinator.server) == 2);
    ck_assert_uint_eq(coordinator.ready_count, 0);
    coordinator_put(&coordinator, "found");
    PUMP(&coordinator, coordinator.ready_count == 2);
    ck_assert_uint_eq(coordinator.gets, 1);
    ck_assert_str_eq(coordinator.ready[0]->job, "job-1");
    ck_assert_uint_eq(coordinator.ready[0]->epoch, 3);
    ck_assert_uint_eq(coordinator.ready[0]->program_hash, 0xfeed);
    ck_assert_uint_eq(coordinator.ready[0]->rank + coordinator.ready[1]->rank, 1);
    PUMP(&coordinator, coordinator.heartbeat && coordinator.heartbeat->n_ranks == 2);

    ck_assert_uint_eq(coordinator_step(&coordinator), 0);
    coordinator_go(&coordinator, "job-1", 3);
    const Stopped *stopped = wait_for_stopped(2);
    ck_assert_int_eq(stopped->cause, GIMBAL__STOPPED_REQUEST__CAUSE__DONE);
    ck_assert_str_eq(stopped->job, "job-1");
    ck_assert_uint_eq(stopped->epoch, 3);
    ck_assert_uint_eq(stopped->step, 5);
    PUMP(&coordinator, coordinator_step(&coordinator) == 5);
    PUMP(&coordinator, coordinator_logged(&coordinator, "other is found"));
    /* The steps did not say whose they are, the worker does. */
    for (size_t i = 0; i < coordinator.telemetry_count; i++) {
        const Gimbal__TelemetryRecord *record = coordinator.telemetry[i];
        if (record->record_case == GIMBAL__TELEMETRY_RECORD__RECORD_STEP) {
            ck_assert_str_eq(record->step->job, "job-1");
            ck_assert_uint_eq(record->step->epoch, 3);
        } else {
            ck_assert_str_eq(record->log->job, "job-1");
            ck_assert_str_eq(record->log->level, "info");
        }
    }
}
END_TEST

START_TEST(a_cancelled_executor_ends)
{
    pid_t executor = run_rank("");
    coordinator_cancel(&coordinator, "job-1", 1);
    const Stopped *stopped = wait_for_stopped(1);
    ck_assert_int_eq(stopped->cause, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED);
    ck_assert_str_eq(stopped->reason, "a person asked for it");
    ck_assert_uint_eq(stopped->step, 1);
    ck_assert(is_gone(executor));
}
END_TEST

START_TEST(a_cancelled_executor_that_does_not_listen_is_killed)
{
    pid_t executor = run_rank("deafening breed");
    pid_t grandchild = child_of(executor, 0);
    ck_assert_int_gt(grandchild, 0);
    coordinator_cancel(&coordinator, "job-1", 1);
    const Stopped *stopped = wait_for_stopped(1);
    ck_assert_int_eq(stopped->cause, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED);
    ck_assert(is_gone(executor));
    PUMP(&coordinator, is_gone(grandchild));
}
END_TEST

/* A second of the worker's own: on a machine that stands still, its heartbeats do not come either.
 */
START_TEST(a_killed_executor_is_reported_within_a_second)
{
    pid_t executor = run_rank("");
    size_t before = coordinator.heartbeats;
    ck_assert_int_eq(kill(executor, SIGKILL), 0);
    const Stopped *stopped = wait_for_stopped(1);
    ck_assert_uint_lt(coordinator.heartbeats - before, 1000 / COORDINATOR_HEARTBEAT_MS);
    ck_assert_int_eq(stopped->cause, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT);
    ck_assert_str_eq(stopped->reason, "the executor was killed by signal 9 (Killed)");
    ck_assert_uint_eq(stopped->step, 1);
}
END_TEST

START_TEST(a_crash_is_reported_with_the_last_lines)
{
    run_rank("crash=4");
    const Stopped *stopped = wait_for_stopped(1);
    ck_assert_int_eq(stopped->cause, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT);
    ck_assert_str_eq(stopped->reason, "the executor was killed by signal 6 (Aborted); its last "
                                      "lines: step 4 went wrong");
    PUMP(&coordinator, coordinator_logged(&coordinator, "step 4 went wrong"));
}
END_TEST

START_TEST(an_executor_that_breaks_the_protocol_is_stopped)
{
    coordinator_assign(&coordinator, "job-1", 1, 0, 0, "rude");
    const Stopped *stopped = wait_for_stopped(1);
    ck_assert_int_eq(stopped->cause, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT);
    ck_assert_ptr_nonnull(strstr(stopped->reason, "a frame of more than"));
}
END_TEST

START_TEST(an_executor_whose_epoch_is_over_is_stopped)
{
    coordinator.refuse_ready = true;
    coordinator_assign(&coordinator, "job-1", 1, 0, 0, "");
    const Stopped *stopped = wait_for_stopped(1);
    ck_assert_int_eq(stopped->cause, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT);
    ck_assert_str_eq(stopped->reason, "the coordinator refuses it: this epoch is over");
    ck_assert_uint_eq(coordinator.reports, 2); /* it could have been the term */
}
END_TEST

START_TEST(a_killed_worker_leaves_no_executor_behind)
{
    pid_t executor = run_rank("deafening");
    int executor_fd = pidfd_open(executor, 0);
    ck_assert_int_ge(executor_fd, 0);
    kill(worker, SIGKILL);
    struct pollfd gone = {.fd = executor_fd, .events = POLLIN};
    int left = poll(&gone, 1, test_patience_ms(PATIENCE_MS));
    pidfd_send_signal(executor_fd, SIGKILL, NULL, 0); /* nothing stays behind a failure either */
    close(executor_fd);
    ck_assert_int_eq(left, 1);
}
END_TEST

START_TEST(a_worker_told_to_stop_stops_its_executors_and_leaves_with_0)
{
    pid_t executor = run_rank("");
    kill(worker, SIGTERM);
    int status = collect(worker);
    worker = 0;
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    ck_assert(is_gone(executor));
    const Stopped *stopped = wait_for_stopped(1);
    ck_assert_int_eq(stopped->cause, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED);
    ck_assert_str_eq(stopped->reason, "node 'node-a' is being stopped");
}
END_TEST

START_TEST(a_worker_registers_with_a_new_coordinator_and_its_executor_goes_on)
{
    pid_t executor = run_rank("");
    coordinator_stop(&coordinator);
    coordinator_restart(&coordinator);
    PUMP(&coordinator, coordinator.reports == 2 && rpc_server_held_count(coordinator.server) == 1);
    ck_assert(!is_gone(executor));
    /* The new one does not know how far the rank is, and asks by assigning it again. */
    coordinator_assign(&coordinator, "job-1", 1, 0, 0, "");
    PUMP(&coordinator, coordinator.ready_count == 2);
    ck_assert_int_eq(child_of(worker, 0), executor);
    ck_assert_int_eq(child_of(worker, 1), 0);
    coordinator_cancel(&coordinator, "job-1", 1);
    ck_assert_int_eq(wait_for_stopped(1)->cause, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED);
}
END_TEST

START_TEST(a_worker_that_was_taken_for_lost_comes_back_as_another_instance)
{
    pid_t executor = run_rank("");
    coordinator.lost_client = coordinator.client;
    const Stopped *stopped = wait_for_stopped(1);
    ck_assert_int_eq(stopped->cause, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT);
    ck_assert_str_eq(stopped->reason,
                     "node 'node-a' was taken for lost: it was silent for too long");
    ck_assert(is_gone(executor));
    ck_assert_uint_eq(coordinator.reports, 2);
    ck_assert_uint_ne(coordinator.client, coordinator.lost_client);
    coordinator_assign(&coordinator, "job-1", 2, 0, 0, "");
    PUMP(&coordinator, coordinator.ready_count == 2);
}
END_TEST

START_TEST(an_end_that_no_coordinator_heard_of_is_told_to_the_next)
{
    pid_t executor = run_rank("");
    int executor_fd = pidfd_open(executor, 0);
    coordinator_stop(&coordinator);
    kill(executor, SIGKILL);
    struct pollfd gone = {.fd = executor_fd, .events = POLLIN};
    ck_assert_int_eq(poll(&gone, 1, test_patience_ms(PATIENCE_MS)), 1);
    close(executor_fd);
    coordinator_restart(&coordinator);
    ck_assert_int_eq(wait_for_stopped(1)->cause, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT);
}
END_TEST

/* What it knows of terms survives it. */
START_TEST(a_worker_that_starts_anew_refuses_a_coordinator_of_an_older_term)
{
    coordinator_stop(&coordinator);
    coordinator_restart(&coordinator);
    PUMP(&coordinator, rpc_server_held_count(coordinator.server) == 1);
    kill(worker, SIGKILL);
    ck_assert_int_eq(waitpid(worker, NULL, 0), worker);
    coordinator.term -= 2;
    coordinator_stop(&coordinator);
    coordinator_restart(&coordinator);
    coordinator.hellos = coordinator.reports = 0;
    worker = spawn_worker(FAKE_EXECUTOR, -1);
    PUMP(&coordinator, coordinator.hellos == 3);
    ck_assert_uint_eq(coordinator.reports, 0);
    coordinator.term++;
    coordinator_stop(&coordinator);
    coordinator_restart(&coordinator);
    PUMP(&coordinator, coordinator.reports == 1);
}
END_TEST

/* What the worker prints until it ends, and its exit status. */
static int run_to_end(const char *executor, char *output, size_t size)
{
    int ends[2], status;
    size_t used = 0;
    ssize_t n;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = spawn_worker(executor, ends[1]);
    close(ends[1]);
    while (used < size - 1 && (n = read(ends[0], output + used, size - 1 - used)) > 0)
        used += (size_t)n;
    output[used] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(a_worker_without_an_executor_says_so_and_leaves_with_69)
{
    char output[4096];
    ck_assert_int_eq(run_to_end("/proc/nowhere/gimbal-executor", output, sizeof output), 69);
    ck_assert_msg(strstr(output, "/proc/nowhere/gimbal-executor: No such file or directory"), "%s",
                  output);
    ck_assert_int_eq(run_to_end("/bin/false", output, sizeof output), 69);
    ck_assert_msg(strstr(output, "left with exit status 1"), "%s", output);
}
END_TEST

START_TEST(two_workers_of_one_name_do_not_share_a_state_folder)
{
    char output[4096], words[256];
    ck_assert_int_eq(run_to_end(FAKE_EXECUTOR, output, sizeof output), 78);
    snprintf(words, sizeof words,
             "another gimbal-worker named 'node-a' keeps its state in '%s': give this one another "
             "--name, and a --state of its own",
             state);
    ck_assert_msg(strstr(output, words) != NULL, "%s", output);
    /* Whatever became of the first, its executors do not hold its place. */
    run_rank("deafening");
    kill(worker, SIGKILL);
    ck_assert_int_eq(waitpid(worker, NULL, 0), worker);
    worker = spawn_worker(FAKE_EXECUTOR, -1);
    PUMP(&coordinator, coordinator.reports == 2);
}
END_TEST

/* The test's coordinator has one stream: both nodes are assigned the rank. */
START_TEST(a_fleets_nodes_register_and_refuse_assignments_in_words)
{
    const char *const arguments[] = {
        WORKER,    "--name", "ship",       "--coordinator", coordinator.address,
        "--fleet", "2",      "--executor", FAKE_EXECUTOR,   "--state",
        state,     NULL};
    kill(worker, SIGTERM);
    ck_assert_int_eq(collect(worker), 0);
    PUMP(&coordinator, rpc_server_held_count(coordinator.server) == 0);
    worker = spawn(arguments, -1);
    PUMP(&coordinator, rpc_server_held_count(coordinator.server) == 2);
    ck_assert_int_eq(strncmp(coordinator.report->node, "ship-000", 8), 0);
    coordinator_assign(&coordinator, "job-1", 1, 0, 0, "train");
    const Stopped *stopped = wait_for_stopped(2);
    ck_assert_int_eq(stopped->cause, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT);
    ck_assert_msg(strstr(stopped->reason, "this node is simulated") != NULL, "%s", stopped->reason);
    kill(worker, SIGTERM);
    ck_assert_int_eq(collect(worker), 0);
    worker = 0;
}
END_TEST

int main(void)
{
    TCase *working = tcase_create("working"), *refusing = tcase_create("refusing");
    tcase_add_checked_fixture(working, set_up, tear_down);
    tcase_add_checked_fixture(refusing, begin, end);
    tcase_set_timeout(working, 60);
    tcase_set_timeout(refusing, 60);
    tcase_add_test(working, a_worker_registers_with_devices_that_have_profiles);
    tcase_add_test(working, an_executor_meets_the_others_gets_ready_steps_and_is_done);
    tcase_add_test(working, a_cancelled_executor_ends);
    tcase_add_test(working, a_cancelled_executor_that_does_not_listen_is_killed);
    tcase_add_test(working, a_killed_executor_is_reported_within_a_second);
    tcase_add_test(working, a_crash_is_reported_with_the_last_lines);
    tcase_add_test(working, an_executor_that_breaks_the_protocol_is_stopped);
    tcase_add_test(working, an_executor_whose_epoch_is_over_is_stopped);
    tcase_add_test(working, a_killed_worker_leaves_no_executor_behind);
    tcase_add_test(working, a_worker_that_starts_anew_refuses_a_coordinator_of_an_older_term);
    tcase_add_test(working, two_workers_of_one_name_do_not_share_a_state_folder);
    tcase_add_test(working, a_fleets_nodes_register_and_refuse_assignments_in_words);
    tcase_add_test(working, a_worker_told_to_stop_stops_its_executors_and_leaves_with_0);
    tcase_add_test(working, a_worker_registers_with_a_new_coordinator_and_its_executor_goes_on);
    tcase_add_test(working, a_worker_that_was_taken_for_lost_comes_back_as_another_instance);
    tcase_add_test(working, an_end_that_no_coordinator_heard_of_is_told_to_the_next);
    tcase_add_test(refusing, a_worker_without_an_executor_says_so_and_leaves_with_69);
    return suite_run("worker", working, refusing, NULL);
}
