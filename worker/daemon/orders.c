/* orders.c - commands to executors. */
#include "worker/daemon/internal.h"

#include <assert.h>
#include <errno.h>

/* An executor to which nothing can be sent is of no use: it is reported as faulty. */
static void send(struct process *process, const Gimbal__ExecutorCommand *command)
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

void orders_assign(struct process *process, Gimbal__Assignment *assignment)
{
    Gimbal__ExecutorCommand command = GIMBAL__EXECUTOR_COMMAND__INIT;
    command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_ASSIGNMENT;
    command.assignment = assignment;
    process->began_ms = daemon_now_ms();
    send(process, &command);
}

void orders_give(struct daemon *daemon, uint64_t id, enum supervisor_action_kind kind)
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
    send(process, &command);
}

void orders_fill_disk(struct process *process, uint32_t for_ms)
{
    Gimbal__FullDisk message = GIMBAL__FULL_DISK__INIT;
    Gimbal__ExecutorCommand command = GIMBAL__EXECUTOR_COMMAND__INIT;
    message.for_ms = for_ms;
    command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_FULL_DISK;
    command.full_disk = &message;
    send(process, &command);
}

void orders_listed(struct daemon *daemon, uint64_t id, uint64_t step, char *const *listed,
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
    send(process, &command);
}

void orders_answer(void *data, uint64_t id, const Gimbal__ExecutorRendezvous *answer)
{
    struct process *process = processes_find(data, id);
    Gimbal__ExecutorCommand command = GIMBAL__EXECUTOR_COMMAND__INIT;
    command.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_RENDEZVOUS;
    command.rendezvous = (Gimbal__ExecutorRendezvous *)answer;
    if (process)
        send(process, &command);
}
