/* daemon.c - one node: reports what has happened to its supervisor, and carries out the actions. */
#include "worker/daemon/daemon.h"

#include "common/base/disk_room.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/hardware/wire.h"
#include "common/rpc/clock.h"
#include "worker/daemon/internal.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>

/* How long a worker that stops waits for its last telemetry to be delivered. */
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

/* For a drill. */
static void hinder(struct daemon *daemon, const struct supervisor_action *action)
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
        orders_give(daemon, action->rank, action->kind);
        break;
    case SUPERVISOR_SIGNAL:
        processes_signal(daemon, action->rank, action->signal);
        break;
    case SUPERVISOR_READY:
        reports_ready(daemon, action->rank);
        break;
    case SUPERVISOR_PAUSED:
        reports_paused(daemon, action->rank);
        break;
    case SUPERVISOR_STAGED:
        reports_staged(daemon, action->rank);
        break;
    case SUPERVISOR_STOPPED:
        reports_stopped(daemon, action->rank);
        break;
    case SUPERVISOR_LOG:
        log_line(action->level, "%s", action->text);
        break;
    case SUPERVISOR_DIE:
        raise(SIGKILL);
        break;
    case SUPERVISOR_HINDER:
        hinder(daemon, action);
        break;
    case SUPERVISOR_FILL_DISK:
        disk_room_deny(action->for_ms);
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
    estates_sweep(daemon);
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
    reports_release(daemon);
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
    while (daemon->push && rpc_push_waiting(daemon->push) > 0 &&
           (left = rpc_clock_left_ms(until_ms, daemon_now_ms())) > 0)
        rpc_client_poll(daemon->client, (int)left);
}

/* As relay_hooks.refused. */
static void refused(void *data, uint64_t rank, uint64_t term, enum rpc_status status,
                    const char *text)
{
    struct daemon *daemon = data;
    supervisor_rank_failed(daemon->supervisor, rank, term, status, text, daemon_now_ms(),
                           &daemon->actions);
}

int daemon_open(const struct daemon_options *options, struct daemon **out, struct error *err)
{
    struct daemon *daemon = xcalloc(1, sizeof *daemon);
    struct relay_hooks hooks = {orders_answer, refused, daemon};
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
    processes_kill_all(daemon);
    estates_close(daemon);
    calls_close(daemon);
    relay_destroy(daemon->relay);
    supervisor_destroy(daemon->supervisor);
    supervisor_actions_finish(&daemon->actions);
    gimbal__hardware_report__free_unpacked(daemon->report, NULL);
    free(daemon->fence_path);
    free(daemon);
}
