/* processes.c - the executors: how they begin, what they say, and how they end. */
#include "worker/daemon/internal.h"

#include "common/base/disk_room.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/rpc/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct process *processes_find(const struct daemon *daemon, uint64_t rank)
{
    for (size_t i = 0; i < daemon->process_count; i++)
        if (daemon->processes[i]->rank == rank)
            return daemon->processes[i];
    return NULL;
}

void processes_start(struct daemon *daemon, uint64_t id, uint64_t from)
{
    static const char *const no_arguments[] = {NULL};
    const struct hardware_report *report = daemon->options.report;
    Gimbal__Assignment *assignment = supervisor_take_assignment(daemon->supervisor, id);
    struct process *process = xcalloc(1, sizeof *process);
    process->daemon = daemon;
    process->rank = id;
    process->state_fd = assignment->keeps ? estates_take(daemon, from) : -1;
    struct child_options options = {
        .shim = daemon->options.shim,
        .program = daemon->options.executor,
        .arguments = no_arguments,
        .cpuset = report->devices[assignment->device_index].cpuset,
        .state_fd = process->state_fd,
    };
    struct error err;
    int rc = options.program ? child_start(&options, &process->child, &err)
                             : error_set(&err, -ENOTSUP, "this node is simulated and runs nothing");
    if (rc < 0) {
        error_prefix(&err, 0, "could not be started");
        estates_leave(daemon, id, process->state_fd);
        supervisor_executor_gone(daemon->supervisor, id, &(struct executor_end){err.text, ""},
                                 daemon_now_ms(), &daemon->actions);
        free(process);
    } else {
        daemon->processes = grow(daemon->processes, daemon->process_count,
                                 &daemon->process_capacity, sizeof(struct process *));
        daemon->processes[daemon->process_count++] = process;
        log_line(LOG_INFO, "job %s epoch %" PRIu64 " rank %" PRIu32 " runs as process %d on %s",
                 assignment->job, assignment->epoch, assignment->rank, (int)process->child.pid,
                 options.cpuset);
        orders_assign(process, assignment);
        if (disk_room_denied_ms() > 0)
            orders_fill_disk(process, disk_room_denied_ms());
    }
    message_free(&assignment->base);
}

void processes_fill_disk(struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->process_count; i++)
        orders_fill_disk(daemon->processes[i], disk_room_denied_ms());
}

/* The process may have ended meanwhile. */
void processes_adopt(struct daemon *daemon, uint64_t id, uint64_t from)
{
    struct process *process = processes_find(daemon, from);
    Gimbal__Assignment *assignment = supervisor_take_assignment(daemon->supervisor, id);
    if (process) {
        relay_forget(daemon->relay, from);
        child_renew(&process->child);
        process->rank = id;
        log_line(LOG_INFO, "job %s epoch %" PRIu64 " rank %" PRIu32 " continues in process %d",
                 assignment->job, assignment->epoch, assignment->rank, (int)process->child.pid);
        orders_assign(process, assignment);
    } else {
        const struct executor_end end = {"ended between two epochs", ""};
        supervisor_executor_gone(daemon->supervisor, id, &end, daemon_now_ms(), &daemon->actions);
    }
    message_free(&assignment->base);
}

void processes_signal(struct daemon *daemon, uint64_t id, int signal)
{
    struct process *process = processes_find(daemon, id);
    if (process)
        child_signal(&process->child, signal);
}

/* Fill in job, epoch and rank if a record does not have them. */
static void complete(const struct rank *rank, char **job, uint64_t *epoch, uint32_t *number)
{
    if (**job)
        return;
    if (*job != protobuf_c_empty_string)
        free(*job);
    *job = xstrdup(rank->job);
    *epoch = rank->epoch;
    if (number)
        *number = rank->rank;
}

static void take_telemetry(struct process *process, const struct rank *rank,
                           Gimbal__TelemetryRecord *record)
{
    switch (record->record_case) {
    case GIMBAL__TELEMETRY_RECORD__RECORD_STEP:
        complete(rank, &record->step->job, &record->step->epoch, &record->step->rank);
        supervisor_executor_stepped(process->daemon->supervisor, process->rank, record->step->step);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_INSTRUCTION:
        complete(rank, &record->instruction->job, &record->instruction->epoch,
                 &record->instruction->rank);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_LOG:
        complete(rank, &record->log->job, &record->log->epoch, &record->log->rank);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION:
        complete(rank, &record->evaluation->job, &record->evaluation->epoch, NULL);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_TRACE:
        complete(rank, &record->trace->job, &record->trace->epoch, &record->trace->rank);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_LINK:
        complete(rank, &record->link->job, &record->link->epoch, &record->link->rank);
        break;
    default:
        return;
    }
    calls_push(process->daemon, record);
}

static void take_stopped(struct process *process, const Gimbal__StoppedRequest *stopped)
{
    struct daemon *daemon = process->daemon;
    if (stopped->keeps)
        supervisor_executor_kept(daemon->supervisor, process->rank, stopped->cause, stopped->reason,
                                 stopped->step, daemon_now_ms(), &daemon->actions);
    else
        supervisor_executor_stopping(daemon->supervisor, process->rank, stopped->cause,
                                     stopped->reason, stopped->step, daemon_now_ms());
}

static void take_event(struct process *process, Gimbal__ExecutorEvent *event)
{
    struct daemon *daemon = process->daemon;
    const struct rank *rank = supervisor_rank(daemon->supervisor, process->rank);
    switch (event->event_case) {
    case GIMBAL__EXECUTOR_EVENT__EVENT_READY:
        /* So that message_free leaves it alone. */
        event->event_case = GIMBAL__EXECUTOR_EVENT__EVENT__NOT_SET;
        supervisor_executor_ready(daemon->supervisor, process->rank, event->ready,
                                  &daemon->actions);
        break;
    case GIMBAL__EXECUTOR_EVENT__EVENT_RENDEZVOUS:
        relay_ask(daemon->relay, process->rank, rank->job, rank->epoch, event->rendezvous);
        break;
    case GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY:
        take_telemetry(process, rank, event->telemetry);
        break;
    case GIMBAL__EXECUTOR_EVENT__EVENT_PAUSED:
        supervisor_executor_paused(daemon->supervisor, process->rank, event->paused->number,
                                   event->paused->step, &daemon->actions);
        break;
    case GIMBAL__EXECUTOR_EVENT__EVENT_STAGED:
        /* So that message_free leaves it alone. */
        event->event_case = GIMBAL__EXECUTOR_EVENT__EVENT__NOT_SET;
        supervisor_executor_staged(daemon->supervisor, process->rank, event->staged,
                                   &daemon->actions);
        break;
    case GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED:
        take_stopped(process, event->stopped);
        break;
    default:
        break; /* from a newer release, or from a probe */
    }
}

static uint64_t unix_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void take_line(void *data, const char *line)
{
    struct process *process = data;
    const struct rank *rank = supervisor_rank(process->daemon->supervisor, process->rank);
    char level[8], text[LINES_SIZE];
    Gimbal__LogLine log = GIMBAL__LOG_LINE__INIT;
    Gimbal__TelemetryRecord record = GIMBAL__TELEMETRY_RECORD__INIT;
    line_read(line, level, text, sizeof text);
    log.job = rank->job;
    log.epoch = rank->epoch;
    log.rank = rank->rank;
    log.unix_us = unix_us();
    log.level = level;
    log.text = text;
    record.record_case = GIMBAL__TELEMETRY_RECORD__RECORD_LOG;
    record.log = &log;
    calls_push(process->daemon, &record);
}

void process_read(struct process *process)
{
    ProtobufCMessage *message;
    struct error err;
    int rc = 0;
    child_read_output(&process->child, take_line, process);
    while (!process->deaf &&
           (rc = channel_read(&process->child.channel, &gimbal__executor_event__descriptor, 0,
                              &message, &err)) > 0) {
        take_event(process, (Gimbal__ExecutorEvent *)message);
        message_free(message);
    }
    if (rc >= 0)
        return;
    process->deaf = true;
    if (rc != -EPIPE)
        supervisor_executor_faulty(process->daemon->supervisor, process->rank, err.text,
                                   daemon_now_ms(), &process->daemon->actions);
}

void process_end(struct process *process)
{
    struct daemon *daemon = process->daemon;
    char last[1024];
    process_read(process);
    lines_end(&process->child.lines, take_line, process);
    lines_last(&process->child.lines, last, sizeof last);
    struct child_end child = child_kill(&process->child);
    const struct executor_end end = {child.how, last, child.struck, child.for_memory};
    relay_forget(daemon->relay, process->rank);
    estates_leave(daemon, process->rank, process->state_fd);
    supervisor_executor_gone(daemon->supervisor, process->rank, &end, daemon_now_ms(),
                             &daemon->actions);
    for (size_t i = 0; i < daemon->process_count; i++)
        if (daemon->processes[i] == process)
            daemon->processes[i] = daemon->processes[--daemon->process_count];
    free(process);
}

void processes_kill_all(struct daemon *daemon)
{
    while (daemon->process_count > 0) {
        struct process *process = daemon->processes[--daemon->process_count];
        child_kill(&process->child);
        if (process->state_fd >= 0)
            close(process->state_fd);
        free(process);
    }
    free(daemon->processes);
}
