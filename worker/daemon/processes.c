/* processes.c - the executors: how they begin, what they are told, what they say, where they are,
 * and how they end.
 *
 * The worker holds the file with an executor's state open, too, so that it outlives a killed
 * executor and can be given to the next one of the job on that device. Where an executor is that
 * makes no progress is read from its trail and from the kernel, so it need not do anything for
 * that, and may even be stopped. One that merely waits for a processor is taken to make progress,
 * slowly. */
#include "worker/daemon/internal.h"

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/message/message.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FD_LEAST 16 /* above the descriptors that a child is started with */

/* Longer in one call is worth reporting; most instructions take less. */
#define POSITION_MS 1000

/* NULL: there is none (any more). */
static struct process *processes_find(const struct daemon *daemon, uint64_t rank)
{
    for (size_t i = 0; i < daemon->process_count; i++)
        if (daemon->processes[i]->rank == rank)
            return daemon->processes[i];
    return NULL;
}

/* The file of a rank whose executor is gone. */
struct state_file {
    uint64_t rank;
    int fd;
};

static int state_file_make(void)
{
    int made = memfd_create("gimbal-state", MFD_CLOEXEC);
    int fd = made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, FD_LEAST);
    if (fd < 0)
        log_line(LOG_WARN, "no file for the state of an executor, which dies with it: %s",
                 strerror(errno));
    if (made >= 0)
        close(made);
    return fd;
}

/* The file that the executor of rank `from` has left, or a new one, for the caller to own. -1: none
 * could be created, which was logged. */
static int state_file_take(struct daemon *daemon, uint64_t from)
{
    for (size_t i = 0; i < daemon->state_file_count; i++) {
        int fd = daemon->state_files[i].fd;
        if (daemon->state_files[i].rank != from)
            continue;
        daemon->state_files[i] = daemon->state_files[--daemon->state_file_count];
        return fd;
    }
    return state_file_make();
}

/* Hold the file (taken) of a rank whose executor is gone. */
static void state_file_leave(struct daemon *daemon, uint64_t rank, int fd)
{
    if (fd < 0)
        return;
    daemon->state_files = grow(daemon->state_files, daemon->state_file_count,
                               &daemon->state_file_capacity, sizeof *daemon->state_files);
    daemon->state_files[daemon->state_file_count++] = (struct state_file){rank, fd};
}

void processes_sweep_states(struct daemon *daemon)
{
    for (size_t i = daemon->state_file_count; i-- > 0;) {
        const struct rank *rank = supervisor_rank(daemon->supervisor, daemon->state_files[i].rank);
        if (rank && rank->has_left_state)
            continue;
        close(daemon->state_files[i].fd);
        daemon->state_files[i] = daemon->state_files[--daemon->state_file_count];
    }
}

static void state_files_close(struct daemon *daemon)
{
    while (daemon->state_file_count > 0)
        close(daemon->state_files[--daemon->state_file_count].fd);
    free(daemon->state_files);
}

/* An executor to which nothing can be sent is of no use: it is reported as faulty. */
static void order_send(struct process *process, const Gimbal__ExecutorCommand *command)
{
    struct error err;
    if (process->deaf)
        return;
    int rc = child_send(&process->child, &command->base, &err);
    if (rc == 0)
        return;
    process->deaf = true;
    if (rc != -EPIPE) /* after EPIPE it is about to end, and will say why */
        supervisor_executor_faulty(process->daemon->supervisor, process->rank, err.text,
                                   daemon_now_ms(), &process->daemon->actions);
}

static void order_assign(struct process *process, Gimbal__Assignment *assignment)
{
    Gimbal__ExecutorCommand command = GIMBAL__EXECUTOR_COMMAND__INIT;
    command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_ASSIGNMENT;
    command.assignment = assignment;
    process->began_ms = daemon_now_ms();
    order_send(process, &command);
}

void processes_order(struct daemon *daemon, uint64_t id, enum supervisor_action_kind kind)
{
    const struct rank *rank = supervisor_rank(daemon->supervisor, id);
    struct process *process = processes_find(daemon, id);
    Gimbal__ExecutorCommand command = GIMBAL__EXECUTOR_COMMAND__INIT;
    Gimbal__Go go = GIMBAL__GO__INIT;
    Gimbal__PauseJob pause = GIMBAL__PAUSE_JOB__INIT;
    Gimbal__ResumeJob resume = GIMBAL__RESUME_JOB__INIT;
    Gimbal__Quiesce quiesce = GIMBAL__QUIESCE__INIT;
    Gimbal__CancelJob cancel = GIMBAL__CANCEL_JOB__INIT;
    if (!process)
        return;
    go.job = pause.job = resume.job = quiesce.job = cancel.job = rank->job;
    go.epoch = pause.epoch = resume.epoch = quiesce.epoch = cancel.epoch = rank->epoch;
    switch (kind) {
    case SUPERVISOR_GO:
        command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_GO;
        command.go = &go;
        break;
    case SUPERVISOR_PAUSE:
        command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_PAUSE;
        command.pause = &pause;
        pause.number = rank->pause;
        break;
    case SUPERVISOR_RESUME:
        command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_RESUME;
        command.resume = &resume;
        resume.number = rank->resumed;
        break;
    case SUPERVISOR_QUIESCE:
        command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_QUIESCE;
        command.quiesce = &quiesce;
        quiesce.save = rank->saving;
        break;
    case SUPERVISOR_SAVE:
        command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_CANCEL;
        command.cancel = &cancel;
        cancel.reason = rank->reason;
        cancel.save = true;
        break;
    default:
        assert(!"an order");
    }
    order_send(process, &command);
}

/* For how long its disk is full. */
static void order_full_disk(struct process *process, uint32_t for_ms)
{
    Gimbal__FullDisk message = GIMBAL__FULL_DISK__INIT;
    Gimbal__ExecutorCommand command = GIMBAL__EXECUTOR_COMMAND__INIT;
    message.for_ms = for_ms;
    command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_FULL_DISK;
    command.full_disk = &message;
    order_send(process, &command);
}

void processes_tell_listed(struct daemon *daemon, uint64_t id, uint64_t step, char *const *listed,
                           size_t count)
{
    struct process *process = processes_find(daemon, id);
    Gimbal__CheckpointListed message = GIMBAL__CHECKPOINT_LISTED__INIT;
    Gimbal__ExecutorCommand command = GIMBAL__EXECUTOR_COMMAND__INIT;
    if (!process)
        return;
    message.step = step;
    message.listed = (char **)listed;
    message.n_listed = count;
    command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_LISTED;
    command.listed = &message;
    order_send(process, &command);
}

void processes_answer(void *data, uint64_t id, const Gimbal__ExecutorRendezvous *answer)
{
    struct process *process = processes_find(data, id);
    Gimbal__ExecutorCommand command = GIMBAL__EXECUTOR_COMMAND__INIT;
    command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_RENDEZVOUS;
    command.rendezvous = (Gimbal__ExecutorRendezvous *)answer;
    if (process)
        order_send(process, &command);
}

void processes_start(struct daemon *daemon, uint64_t id, uint64_t from)
{
    static const char *const no_arguments[] = {NULL};
    const struct hardware_report *report = daemon->options.report;
    Gimbal__Assignment *assignment = supervisor_take_assignment(daemon->supervisor, id);
    struct process *process = xcalloc(1, sizeof *process);
    process->daemon = daemon;
    process->rank = id;
    process->state_fd = assignment->keeps ? state_file_take(daemon, from) : -1;
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
        state_file_leave(daemon, id, process->state_fd);
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
        order_assign(process, assignment);
        if (disk_space_denied_ms() > 0)
            order_full_disk(process, disk_space_denied_ms());
    }
    message_free(&assignment->base);
}

void processes_fill_disk(struct daemon *daemon)
{
    for (size_t i = 0; i < daemon->process_count; i++)
        order_full_disk(daemon->processes[i], disk_space_denied_ms());
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
        order_assign(process, assignment);
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
static void complete_record(const struct rank *rank, char **job, uint64_t *epoch, uint32_t *number)
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

static void process_telemetry(struct process *process, const struct rank *rank,
                              Gimbal__TelemetryRecord *record)
{
    switch (record->record_case) {
    case GIMBAL__TELEMETRY_RECORD__RECORD_STEP:
        complete_record(rank, &record->step->job, &record->step->epoch, &record->step->rank);
        supervisor_executor_stepped(process->daemon->supervisor, process->rank, record->step->step);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_INSTRUCTION:
        complete_record(rank, &record->instruction->job, &record->instruction->epoch,
                        &record->instruction->rank);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_LOG:
        complete_record(rank, &record->log->job, &record->log->epoch, &record->log->rank);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_EVALUATION:
        complete_record(rank, &record->evaluation->job, &record->evaluation->epoch, NULL);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_TRACE:
        complete_record(rank, &record->trace->job, &record->trace->epoch, &record->trace->rank);
        break;
    case GIMBAL__TELEMETRY_RECORD__RECORD_LINK:
        complete_record(rank, &record->link->job, &record->link->epoch, &record->link->rank);
        break;
    default:
        return;
    }
    calls_push(process->daemon, record);
}

static void process_event(struct process *process, Gimbal__ExecutorEvent *event)
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
        process_telemetry(process, rank, event->telemetry);
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
        supervisor_executor_stopped(daemon->supervisor, process->rank, event->stopped,
                                    daemon_now_ms(), &daemon->actions);
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

static void process_line(void *data, const char *line)
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
    child_read_output(&process->child, process_line, process);
    while (!process->deaf &&
           (rc = channel_read(&process->child.channel, &gimbal__executor_event__descriptor, 0,
                              &message, &err)) > 0) {
        process_event(process, (Gimbal__ExecutorEvent *)message);
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
    lines_end(&process->child.lines, process_line, process);
    lines_last(&process->child.lines, last, sizeof last);
    struct child_end child = child_kill(&process->child);
    const struct executor_end end = {child.how, last, child.struck, child.for_memory};
    relay_forget(daemon->relay, process->rank);
    state_file_leave(daemon, process->rank, process->state_fd);
    supervisor_executor_gone(daemon->supervisor, process->rank, &end, daemon_now_ms(),
                             &daemon->actions);
    for (size_t i = 0; i < daemon->process_count; i++)
        if (daemon->processes[i] == process)
            daemon->processes[i] = daemon->processes[--daemon->process_count];
    free(process);
}

void processes_close(struct daemon *daemon)
{
    while (daemon->process_count > 0) {
        struct process *process = daemon->processes[--daemon->process_count];
        child_kill(&process->child);
        if (process->state_fd >= 0)
            close(process->state_fd);
        free(process);
    }
    free(daemon->processes);
    state_files_close(daemon);
}

static void position_of_call(const struct trail_position *at, Gimbal__RankPosition *out)
{
    out->call = xstrdup(at->call.name);
    out->inside = at->inside;
    out->exchanges = at->inside && at->call.kind == TRAIL_EXCHANGES;
    out->group = at->call.group;
    out->number = at->call.number;
    out->step = at->call.step;
    out->awaits = (uint32_t)(at->peer + 1);
    out->past_groups = xcalloc(at->past_count, sizeof *out->past_groups);
    out->past_numbers = xcalloc(at->past_count, sizeof *out->past_numbers);
    for (size_t i = 0; i < at->past_count; i++) {
        out->past_groups[i] = at->past[i].group;
        out->past_numbers[i] = at->past[i].number;
    }
    out->n_past_groups = out->n_past_numbers = at->past_count;
}

/* When its process was first seen stopped; 0: it is not. */
static uint64_t look_at_process(struct process *process, uint64_t now_ms)
{
    child_look(&process->look, process->child.pid, now_ms);
    if (!process->look.stopped)
        process->stopped_ms = 0;
    else if (process->stopped_ms == 0)
        process->stopped_ms = now_ms;
    return process->stopped_ms;
}

Gimbal__RankPosition *processes_position(struct daemon *daemon, uint64_t rank)
{
    struct process *process = processes_find(daemon, rank);
    struct trail_position at;
    if (!process)
        return NULL;
    uint64_t now_ms = daemon_now_ms(), stopped_ms = look_at_process(process, now_ms);
    /* A call from the previous epoch says nothing. */
    bool known = trail_read(process->child.trail, &at) && at.call.entered_ms >= process->began_ms;
    uint64_t held_ms = known && now_ms > at.call.entered_ms ? now_ms - at.call.entered_ms : 0;
    if (process->look.starved || (stopped_ms == 0 && held_ms < POSITION_MS))
        return NULL;
    Gimbal__RankPosition *position = xcalloc(1, sizeof *position);
    gimbal__rank_position__init(position);
    position->stopped = stopped_ms > 0;
    position->stopped_ms = stopped_ms > 0 ? now_ms - stopped_ms : 0;
    position->held_ms = held_ms;
    if (known)
        position_of_call(&at, position);
    return position;
}
