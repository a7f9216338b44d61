/* daemon.c - one node: reports what has happened to its supervisor, and carries out the actions.
 * And one thread for any number of nodes: poll, then give a turn to each node to which something
 * happened. */
#include "worker/daemon/daemon.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/hardware/hardware.h"
#include "worker/daemon/internal.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

/* How long a worker that stops waits for its last telemetry to be delivered. */
#define FLUSH_MS 1000

uint64_t daemon_now_ms(void)
{
    return clock_ms();
}

static void reconnect(struct daemon *daemon)
{
    struct error err;
    if (calls_reopen(daemon, &err) == 0)
        return;
    log_line(LOG_ERROR, "%s", err.text);
    daemon->quit = true;
    daemon->status = EXIT_FAILURE;
}

/* For a drill. */
static void hinder_client(struct daemon *daemon, const struct supervisor_action *action)
{
    daemon->hindrance = (struct rpc_hindrance){action->delay_ms, daemon_now_ms() + action->for_ms};
    rpc_client_hinder(daemon->client, &daemon->hindrance);
}

static void carry_out(struct daemon *daemon, const struct supervisor_action *action)
{
    switch (action->kind) {
    case SUPERVISOR_HELLO:
        calls_hello(daemon);
        break;
    case SUPERVISOR_REPORT:
        calls_report(daemon);
        break;
    case SUPERVISOR_HEARTBEAT:
        calls_heartbeat(daemon);
        break;
    case SUPERVISOR_WATCH:
        calls_watch(daemon, action->revision);
        break;
    case SUPERVISOR_RECONNECT:
        reconnect(daemon);
        break;
    case SUPERVISOR_START:
        processes_start(daemon, action->rank, action->from);
        break;
    case SUPERVISOR_ADOPT:
        processes_adopt(daemon, action->rank, action->from);
        break;
    case SUPERVISOR_GO:
    case SUPERVISOR_PAUSE:
    case SUPERVISOR_RESUME:
    case SUPERVISOR_QUIESCE:
    case SUPERVISOR_SAVE:
        processes_order(daemon, action->rank, action->kind);
        break;
    case SUPERVISOR_SIGNAL:
        processes_signal(daemon, action->rank, action->signal);
        break;
    case SUPERVISOR_DELIVER:
        calls_deliver(daemon, action->rank, action->message);
        break;
    case SUPERVISOR_LOG:
        log_line(action->level, "%s", action->text);
        break;
    case SUPERVISOR_DIE:
        raise(SIGKILL);
        break;
    case SUPERVISOR_HINDER:
        hinder_client(daemon, action);
        break;
    case SUPERVISOR_FILL_DISK:
        disk_space_deny(action->for_ms);
        processes_fill_disk(daemon);
        break;
    case SUPERVISOR_QUIT:
        daemon->quit = true;
        daemon->status = action->status;
        break;
    }
}

/* Carrying out an action may append others, which are carried out too. */
static void carry_out_all(struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->actions.count && !daemon->quit; i++) {
        struct supervisor_action action = daemon->actions.items[i];
        carry_out(daemon, &action);
    }
    supervisor_actions_clear(&daemon->actions);
    processes_sweep_states(daemon);
}

uint64_t daemon_next_ms(const struct daemon *daemon)
{
    return supervisor_next_ms(daemon->supervisor);
}

enum { FD_CLIENT, FD_FIXED, FD_PROCESS = 0, FD_CHANNEL, FD_OUTPUT, FD_EACH };

size_t daemon_fd_count(const struct daemon *daemon)
{
    return FD_FIXED + FD_EACH * daemon->process_count;
}

void daemon_list_fds(const struct daemon *daemon, struct pollfd *fds)
{
    fds[FD_CLIENT].fd = daemon->client ? rpc_client_fd(daemon->client) : -1;
    for (size_t i = 0; i < daemon->process_count; i++) {
        const struct process *process = daemon->processes[i];
        struct pollfd *of = &fds[FD_FIXED + FD_EACH * i];
        of[FD_PROCESS].fd = process->child.pid_fd;
        of[FD_CHANNEL].fd = process->deaf ? -1 : process->child.channel.fd;
        of[FD_OUTPUT].fd = process->child.output_fd;
    }
    for (size_t i = 0; i < daemon_fd_count(daemon); i++)
        fds[i].events = POLLIN;
}

/* From last to first: a process that ends is replaced in the array by the last one. */
static void read_processes(struct daemon *daemon, const struct pollfd *fds)
{
    for (size_t i = daemon->process_count; i-- > 0;) {
        const struct pollfd *of = &fds[FD_FIXED + FD_EACH * i];
        if (of[FD_PROCESS].revents)
            process_end(daemon->processes[i]);
        else if (of[FD_CHANNEL].revents || of[FD_OUTPUT].revents)
            process_read(daemon->processes[i]);
    }
}

void daemon_turn(struct daemon *daemon, const struct pollfd *fds)
{
    read_processes(daemon, fds);
    if (fds[FD_CLIENT].revents)
        rpc_client_poll(daemon->client, 0);
    calls_release(daemon);
    supervisor_expire(daemon->supervisor, daemon_now_ms(), &daemon->actions);
    carry_out_all(daemon);
}

void daemon_terminate(struct daemon *daemon)
{
    supervisor_terminate(daemon->supervisor, daemon_now_ms(), &daemon->actions);
    carry_out_all(daemon);
}

void daemon_flush(struct daemon *daemon)
{
    uint64_t until_ms = daemon_now_ms() + FLUSH_MS;
    uint32_t left;
    while (daemon->client && daemon->push && rpc_push_waiting(daemon->push) > 0 &&
           (left = clock_left_ms(until_ms, daemon_now_ms())) > 0)
        rpc_client_poll(daemon->client, (int)left);
}

/* As relay_hooks.refused. */
static void relay_refused(void *data, uint64_t rank, uint64_t term, enum rpc_status status,
                          const char *text)
{
    struct daemon *daemon = data;
    supervisor_rank_failed(daemon->supervisor, rank, term, status, text, daemon_now_ms(),
                           &daemon->actions);
}

int daemon_open(const struct daemon_options *options, struct daemon **out, struct error *err)
{
    struct daemon *daemon = xcalloc(1, sizeof *daemon);
    struct relay_hooks hooks = {processes_answer, relay_refused, daemon};
    daemon->options = *options;
    daemon->report = hardware_report_to_wire(options->report);
    daemon->relay = relay_create(&hooks);
    daemon->fence_path = fence_path(options->state, options->report->node);
    int rc = folder_make(options->state, err);
    if (rc == 0)
        rc = fence_read(daemon->fence_path, &daemon->fence, err);
    if (rc == 0)
        rc = calls_open(daemon, err);
    if (rc < 0) {
        daemon_close(daemon);
        return rc;
    }
    daemon->supervisor =
        supervisor_create(options->report->node, (uint32_t)options->report->device_count,
                          rpc_client_id(daemon->client));
    supervisor_start(daemon->supervisor, &daemon->actions);
    carry_out_all(daemon);
    *out = daemon;
    return 0;
}

void daemon_close(struct daemon *daemon)
{
    if (!daemon)
        return;
    processes_close(daemon);
    calls_close(daemon);
    relay_destroy(daemon->relay);
    supervisor_destroy(daemon->supervisor);
    supervisor_actions_finish(&daemon->actions);
    gimbal__hardware_report__free_unpacked(daemon->report, NULL);
    free(daemon->fence_path);
    free(daemon);
}

struct loop {
    struct daemon *const *daemons;
    size_t count;
    int signal_fd;
    struct notify *notify;
    bool stopping;
    struct pollfd *fds; /* the signalfd, then those of each daemon */
    size_t fd_capacity;
};

/* Returns their number. */
static size_t loop_list_fds(struct loop *loop)
{
    size_t count = 1;
    for (size_t i = 0; i < loop->count; i++)
        count += daemon_fd_count(loop->daemons[i]);
    if (!loop->fds || count > loop->fd_capacity) {
        free(loop->fds);
        loop->fds = xcalloc(count, sizeof *loop->fds);
        loop->fd_capacity = count;
    }
    loop->fds[0] = (struct pollfd){.fd = loop->signal_fd, .events = POLLIN};
    size_t at = 1;
    for (size_t i = 0; i < loop->count; i++) {
        daemon_list_fds(loop->daemons[i], &loop->fds[at]);
        at += daemon_fd_count(loop->daemons[i]);
    }
    return count;
}

static int loop_timeout_ms(const struct loop *loop)
{
    uint64_t next_ms = UINT64_MAX;
    for (size_t i = 0; i < loop->count; i++) {
        uint64_t of_it = daemon_next_ms(loop->daemons[i]);
        if (!loop->daemons[i]->quit && of_it < next_ms)
            next_ms = of_it;
    }
    if (next_ms == UINT64_MAX)
        return -1;
    uint32_t left = clock_left_ms(next_ms, daemon_now_ms());
    return left > INT_MAX ? INT_MAX : (int)left;
}

/* Whether the daemon's turn would have anything to do. */
static bool is_due(const struct daemon *daemon, const struct pollfd *fds, uint64_t now_ms)
{
    if (daemon_next_ms(daemon) <= now_ms || daemon->actions.count > 0)
        return true;
    for (size_t i = 0; i < daemon_fd_count(daemon); i++)
        if (fds[i].revents)
            return true;
    return false;
}

static void loop_take_signal(struct loop *loop)
{
    struct signalfd_siginfo info;
    if (read(loop->signal_fd, &info, sizeof info) != sizeof info)
        return;
    loop->stopping = true;
    for (size_t i = 0; i < loop->count; i++)
        if (!loop->daemons[i]->quit)
            daemon_terminate(loop->daemons[i]);
}

/* One round of the loop. -errno: poll has failed. */
static int loop_turn(struct loop *loop)
{
    size_t fd_count = loop_list_fds(loop), at = 1;
    int wait_ms = notify_timeout_ms(loop->notify, loop_timeout_ms(loop), daemon_now_ms());
    if (poll(loop->fds, fd_count, wait_ms) < 0)
        return errno == EINTR ? 0 : -errno; /* a signal without a handler here */
    uint64_t now_ms = daemon_now_ms();
    for (size_t i = 0; i < loop->count; i++) {
        struct daemon *daemon = loop->daemons[i];
        const struct pollfd *fds = &loop->fds[at];
        at += daemon_fd_count(daemon); /* the number that was listed */
        if (!daemon->quit && is_due(daemon, fds, now_ms))
            daemon_turn(daemon, fds);
    }
    if (loop->fds[0].revents)
        loop_take_signal(loop);
    return 0;
}

/* All daemons have ended, or one has without being told to. *status is set if one ended with an
 * error. */
static bool loop_is_over(const struct loop *loop, int *status)
{
    size_t ended = 0;
    for (size_t i = 0; i < loop->count; i++) {
        const struct daemon *daemon = loop->daemons[i];
        if (daemon->quit && daemon->status != 0)
            *status = daemon->status;
        ended += daemon->quit;
    }
    return ended == loop->count || (ended > 0 && !loop->stopping);
}

static void loop_notify(const struct loop *loop)
{
    char words[256];
    if (loop->count == 1)
        notify_status(loop->notify, "%s",
                      supervisor_describe(loop->daemons[0]->supervisor, words, sizeof words));
    else
        notify_status(loop->notify, "a fleet of %zu nodes", loop->count);
    notify_alive(loop->notify, daemon_now_ms());
}

int daemons_run(struct daemon *const *daemons, size_t count, int signal_fd, struct notify *notify)
{
    struct loop loop = {
        .daemons = daemons, .count = count, .signal_fd = signal_fd, .notify = notify};
    int status = EXIT_SUCCESS, rc = 0;
    loop_notify(&loop);
    notify_ready(notify);
    while (rc == 0 && !loop_is_over(&loop, &status)) {
        rc = loop_turn(&loop);
        loop_notify(&loop);
    }
    if (rc < 0) {
        log_line(LOG_ERROR, "cannot wait for what happens, and leaves: poll: %s", strerror(-rc));
        status = EX_OSERR;
    }
    notify_stopping(notify);
    for (size_t i = 0; i < count; i++)
        daemon_flush(daemons[i]);
    free(loop.fds);
    return status;
}
