/* daemon.c - one loop: wait for something to happen, tell the supervisor, do what it says. */
#include "worker/supervisor/daemon.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/hardware/wire.h"
#include "common/rpc/clock.h"
#include "worker/supervisor/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* A stopping worker waits so long for its last telemetry to be taken. */
#define FLUSH_MS 1000

uint64_t daemon_now_ms(void)
{
    return rpc_clock_ms();
}

static void reconnect(struct daemon *daemon)
{
    struct error err;
    calls_close(daemon);
    if (calls_open(daemon, &err) == 0)
        return;
    log_line(LOG_ERROR, "%s", err.text);
    daemon->quit = true;
    daemon->status = EXIT_FAILURE;
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
        processes_start(daemon, action->rank);
        break;
    case SUPERVISOR_GO:
        processes_go(daemon, action->rank);
        break;
    case SUPERVISOR_SIGNAL:
        processes_signal(daemon, action->rank, action->signal);
        break;
    case SUPERVISOR_READY:
        calls_ready(daemon, action->rank);
        break;
    case SUPERVISOR_STOPPED:
        calls_stopped(daemon, action->rank);
        break;
    case SUPERVISOR_LOG:
        log_line(action->level, "%s", action->text);
        break;
    case SUPERVISOR_QUIT:
        daemon->quit = true;
        daemon->status = action->status;
        break;
    }
}

/* An action may have others follow at once; they are carried out as well. */
static void carry_out_all(struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->actions.count && !daemon->quit; i++) {
        struct supervisor_action action = daemon->actions.items[i];
        carry_out(daemon, &action);
    }
    supervisor_actions_clear(&daemon->actions);
}

static void take_signal(struct daemon *daemon)
{
    struct signalfd_siginfo info;
    if (read(daemon->options.signal_fd, &info, sizeof info) == sizeof info)
        supervisor_terminate(daemon->supervisor, daemon_now_ms(), &daemon->actions);
}

static int timeout_ms(const struct daemon *daemon)
{
    uint64_t next = supervisor_next_ms(daemon->supervisor);
    if (next == UINT64_MAX)
        return -1;
    uint32_t left = rpc_clock_left_ms(next, daemon_now_ms());
    return left > INT_MAX ? INT_MAX : (int)left;
}

enum { FD_CLIENT, FD_SIGNAL, FD_FIXED, FD_PROCESS = 0, FD_CHANNEL, FD_OUTPUT, FD_EACH };

/* All that may become readable: FD_FIXED, then FD_EACH for each process. Yours to free. */
static struct pollfd *list_fds(const struct daemon *daemon, size_t *count)
{
    *count = FD_FIXED + FD_EACH * daemon->process_count;
    struct pollfd *fds = xcalloc(*count, sizeof *fds);
    fds[FD_CLIENT].fd = rpc_client_fd(daemon->client);
    fds[FD_SIGNAL].fd = daemon->options.signal_fd;
    for (size_t i = 0; i < daemon->process_count; i++) {
        const struct process *process = daemon->processes[i];
        struct pollfd *of = &fds[FD_FIXED + FD_EACH * i];
        of[FD_PROCESS].fd = process->child.pid_fd;
        of[FD_CHANNEL].fd = process->deaf ? -1 : process->child.channel.fd;
        of[FD_OUTPUT].fd = process->child.output_fd;
    }
    for (size_t i = 0; i < *count; i++)
        fds[i].events = POLLIN;
    return fds;
}

/* From the last to the first: one that ends gives its place to the last. */
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

static void turn(struct daemon *daemon)
{
    size_t count;
    struct pollfd *fds = list_fds(daemon, &count);
    if (poll(fds, count, timeout_ms(daemon)) > 0) {
        read_processes(daemon, fds);
        rpc_client_poll(daemon->client, 0);
        if (fds[FD_SIGNAL].revents)
            take_signal(daemon);
    }
    free(fds);
    supervisor_expire(daemon->supervisor, daemon_now_ms(), &daemon->actions);
    carry_out_all(daemon);
}

static void flush_telemetry(struct daemon *daemon)
{
    uint64_t until_ms = daemon_now_ms() + FLUSH_MS;
    uint32_t left;
    while (rpc_push_waiting(daemon->push) > 0 &&
           (left = rpc_clock_left_ms(until_ms, daemon_now_ms())) > 0)
        rpc_client_poll(daemon->client, (int)left);
}

/* What an executor asked for was refused. */
static void refused(void *data, uint64_t rank, enum rpc_status status, const char *text)
{
    struct daemon *daemon = data;
    supervisor_rank_failed(daemon->supervisor, rank, status, text, daemon_now_ms(),
                           &daemon->actions);
}

int daemon_run(const struct daemon_options *options, struct error *err)
{
    struct daemon daemon = {.options = *options};
    struct relay_hooks hooks = {processes_answer, refused, &daemon};
    daemon.report = hardware_report_to_wire(options->report);
    daemon.relay = relay_create(&hooks);
    int rc = calls_open(&daemon, err);
    if (rc == 0) {
        daemon.supervisor =
            supervisor_create(options->report->node, (uint32_t)options->report->device_count,
                              rpc_client_id(daemon.client));
        supervisor_start(daemon.supervisor, &daemon.actions);
        carry_out_all(&daemon);
        while (!daemon.quit)
            turn(&daemon);
        flush_telemetry(&daemon);
    }
    processes_kill_all(&daemon);
    calls_close(&daemon);
    relay_destroy(daemon.relay);
    supervisor_destroy(daemon.supervisor);
    supervisor_actions_finish(&daemon.actions);
    gimbal__hardware_report__free_unpacked(daemon.report, NULL);
    return rc < 0 ? rc : daemon.status;
}
