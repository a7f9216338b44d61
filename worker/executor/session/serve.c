/* serve.c - the only reader of the channel: commands of the other side, and what follows from
 * them. */
#include "worker/executor/session/internal.h"

#include "common/base/disk_room.h"
#include "common/base/memory.h"
#include "common/rpc/message.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Needs the lock. */
static void take_listed(struct session *session, const Gimbal__CheckpointListed *message)
{
    session_forget_listed(session);
    session->now.listed_step = message->step;
    session->now.listed.names = xcalloc(message->n_listed, sizeof(char *));
    for (; session->now.listed.count < message->n_listed; session->now.listed.count++)
        session->now.listed.names[session->now.listed.count] =
            xstrdup(message->listed[session->now.listed.count]);
}

/* Leave the epoch, after a step that is saved or at once. Needs the lock. */
static void leave(struct session *session, bool save)
{
    if (save && session->now.saves && session->now.stop == STOP_NOT) {
        session->now.stop = STOP_AND_STAY;
    } else if (!save) {
        session->now.quiesced = true;
        session_abort_locked(session);
    }
}

/* End the process, after a step that is saved or at once. Needs the lock. */
static void cancel(struct session *session, bool save)
{
    if (save && session->now.saves)
        session->now.stop = STOP_AND_END;
    else
        session_cancel_locked(session);
}

static void obey(struct session *session, const Gimbal__ExecutorCommand *command)
{
    if (command->command_case == GIMBAL__EXECUTOR_COMMAND__COMMAND_RENDEZVOUS) {
        session_answer(session, command->rendezvous);
        return;
    }
    if (command->command_case == GIMBAL__EXECUTOR_COMMAND__COMMAND_FULL_DISK) {
        disk_room_deny(command->full_disk->for_ms);
        return;
    }
    pthread_mutex_lock(&session->lock);
    switch (command->command_case) {
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_GO:
        session->now.go = true;
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_CANCEL:
        cancel(session, command->cancel->save);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_QUIESCE:
        leave(session, command->quiesce->save);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_PAUSE:
        raise_to(&session->now.paused, command->pause->number);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_RESUME:
        raise_to(&session->now.resumed, command->resume->number);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_LISTED:
        take_listed(session, command->listed);
        break;
    default:
        break;
    }
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

/* Begin a new epoch: forget everything that was said about the last one. Request ids keep counting,
 * so that a late answer cannot be taken for one to a new request. */
static void renew(struct session *session, Gimbal__ExecutorCommand *command)
{
    pthread_mutex_lock(&session->lock);
    message_free((ProtobufCMessage *)session->first);
    session->first = command;
    session_forget_listed(session);
    session->now = (struct session_epoch){0};
    pthread_mutex_unlock(&session->lock);
    session_name(session, command->assignment->job, command->assignment->epoch);
}

/* Wait for a command. Returns 1 with a command that the caller frees, 0 once session_finish was
 * called, or the error with which the channel ended. Commands sent before a signal are returned
 * before it is handled. */
static int next_command(struct session *session, Gimbal__ExecutorCommand **out, struct error *err)
{
    for (;;) {
        ProtobufCMessage *message = NULL;
        int rc = session->gone
                     ? 0
                     : channel_read(&session->channel, &gimbal__executor_command__descriptor, 0,
                                    &message, err);
        if (rc > 0)
            *out = (Gimbal__ExecutorCommand *)message;
        if (rc != 0)
            return rc;
        struct pollfd wait[] = {{.fd = session->gone ? -1 : session->channel.fd, .events = POLLIN},
                                {.fd = session->finish_fd, .events = POLLIN},
                                {.fd = session->signal_fd, .events = POLLIN}};
        if (poll(wait, 3, -1) < 0 && errno != EINTR)
            return error_set(err, -EIO, "poll: %s", strerror(errno));
        if (wait[1].revents)
            return 0;
        if (wait[2].revents && !wait[0].revents)
            session_take_signal(session);
    }
}

int session_assignment(struct session *session, const Gimbal__Assignment **out, struct error *err)
{
    while (!session_terminated(session)) {
        Gimbal__ExecutorCommand *command = NULL;
        session->between = true;
        int rc = next_command(session, &command, err);
        session->between = false;
        if (rc < 0)
            return rc;
        if (command->command_case == GIMBAL__EXECUTOR_COMMAND__COMMAND_ASSIGNMENT) {
            renew(session, command);
            *out = command->assignment;
            return 0;
        }
        if (command->command_case == GIMBAL__EXECUTOR_COMMAND__COMMAND_FULL_DISK)
            disk_room_deny(command->full_disk->for_ms);
        message_free(&command->base);
        if (!session->first)
            return error_set(err, -EPROTO, "the first command is not an assignment");
    }
    return error_set(err, -ECANCELED, "ended by SIGTERM between two epochs");
}

/* The other side is gone, so there is nobody to train for. */
static void lose(struct session *session)
{
    session->gone = true;
    pthread_mutex_lock(&session->lock);
    session_cancel_locked(session);
    pthread_mutex_unlock(&session->lock);
}

void session_serve(struct session *session)
{
    Gimbal__ExecutorCommand *command = NULL;
    int rc;
    while ((rc = next_command(session, &command, NULL)) != 0) {
        if (rc < 0) {
            lose(session);
            continue;
        }
        obey(session, command);
        message_free(&command->base);
    }
    uint64_t ignored;
    while (read(session->finish_fd, &ignored, sizeof ignored) < 0 && errno == EINTR)
        ;
}

void session_finish(struct session *session)
{
    uint64_t one = 1;
    while (write(session->finish_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}
