/* session.c - one reader, many writers, and who waits for what. */
#include "worker/executor/session.h"

#include "common/base/memory.h"
#include "common/channel/channel.h"
#include "common/rpc/message.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A rank that waits for the answer to a rendezvous. */
struct asking {
    uint64_t id;
    bool answered;
    uint8_t *value;
    size_t size;
    struct asking *next;
};

struct guarded {
    const struct collectives *collectives;
    struct fabric *fabric;
};

struct session {
    struct channel channel;
    int finish_fd;
    pthread_mutex_t write_lock, lock;
    pthread_cond_t changed;
    bool go, cancelled, quiesced, gone, gave_up;
    bool saves, stop; /* stop: with a checkpoint */
    char *job;
    uint64_t epoch, next_id;
    struct data_file *files;
    size_t file_count;
    struct beginning beginning;
    uint64_t steps;           /* finished, of the rank that has most */
    uint64_t paused, resumed; /* the newest pause that was asked for, and that is over */
    struct asking *asking;
    uint64_t listed_step; /* of the newest checkpoint that the other side has taken */
    struct saver_listed listed;
    struct guarded *guarded;
    size_t guarded_count, guarded_capacity;
    Gimbal__ExecutorCommand *first; /* holds the assignment of this epoch */
};

struct session *session_create(int fd)
{
    struct session *session = xcalloc(1, sizeof *session);
    channel_open(&session->channel, fd);
    session->finish_fd = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&session->write_lock, NULL);
    pthread_mutex_init(&session->lock, NULL);
    pthread_cond_init(&session->changed, NULL);
    session->job = xstrdup("");
    return session;
}

static void forget_listed(struct session *session)
{
    for (size_t i = 0; i < session->listed.count; i++)
        free(session->listed.names[i]);
    free(session->listed.names);
    session->listed = (struct saver_listed){0};
}

void session_destroy(struct session *session)
{
    if (!session)
        return;
    channel_close(&session->channel);
    close(session->finish_fd);
    message_free((ProtobufCMessage *)session->first);
    pthread_mutex_destroy(&session->write_lock);
    pthread_mutex_destroy(&session->lock);
    pthread_cond_destroy(&session->changed);
    free(session->job);
    data_files_free(session->files, session->file_count);
    forget_listed(session);
    free(session->guarded);
    free(session);
}

void session_name(struct session *session, const char *job, uint64_t epoch)
{
    free(session->job);
    session->job = xstrdup(job);
    session->epoch = epoch;
}

char *session_job(const struct session *session)
{
    return session->job;
}

uint64_t session_epoch(const struct session *session)
{
    return session->epoch;
}

void session_reads(struct session *session, const struct data_source *data)
{
    session->file_count = data_files(data, &session->files);
}

size_t session_files(const struct session *session, const struct data_file **out)
{
    *out = session->files;
    return session->file_count;
}

void session_begins(struct session *session, const struct beginning *beginning)
{
    pthread_mutex_lock(&session->lock);
    session->beginning = *beginning;
    pthread_mutex_unlock(&session->lock);
    session_stepped(session, beginning->step);
}

struct beginning session_beginning(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    struct beginning beginning = session->beginning;
    pthread_mutex_unlock(&session->lock);
    return beginning;
}

/* Under the lock: nothing of this epoch is worth waiting for. */
static bool is_over(const struct session *session)
{
    return session->cancelled || session->quiesced;
}

static void abort_all(struct session *session)
{
    for (size_t i = 0; i < session->guarded_count; i++)
        session->guarded[i].collectives->abort(session->guarded[i].fabric);
    pthread_cond_broadcast(&session->changed);
}

/* Under the lock: nothing goes on any more. */
static void cancel_locked(struct session *session)
{
    session->cancelled = true;
    abort_all(session);
}

void session_send(struct session *session, Gimbal__ExecutorEvent *event)
{
    pthread_mutex_lock(&session->write_lock);
    int rc = channel_write(&session->channel, &event->base, NULL);
    pthread_mutex_unlock(&session->write_lock);
    if (rc == 0)
        return;
    pthread_mutex_lock(&session->lock);
    session->gone = true;
    cancel_locked(session);
    pthread_mutex_unlock(&session->lock);
}

void session_guard(struct session *session, const struct collectives *collectives,
                   struct fabric *fabric)
{
    pthread_mutex_lock(&session->lock);
    session->guarded = grow(session->guarded, session->guarded_count, &session->guarded_capacity,
                            sizeof *session->guarded);
    session->guarded[session->guarded_count++] = (struct guarded){collectives, fabric};
    if (is_over(session))
        collectives->abort(fabric);
    pthread_mutex_unlock(&session->lock);
}

void session_unguard(struct session *session, struct fabric *fabric)
{
    pthread_mutex_lock(&session->lock);
    for (size_t i = 0; i < session->guarded_count; i++)
        if (session->guarded[i].fabric == fabric)
            session->guarded[i] = session->guarded[--session->guarded_count];
    pthread_mutex_unlock(&session->lock);
}

bool session_cancelled(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    bool cancelled = session->cancelled;
    pthread_mutex_unlock(&session->lock);
    return cancelled;
}

bool session_quiesced(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    bool quiesced = session->quiesced;
    pthread_mutex_unlock(&session->lock);
    return quiesced;
}

void session_abort(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    abort_all(session);
    pthread_mutex_unlock(&session->lock);
}

/* Ask the other side and wait; the value is the caller's to free. */
static int ask(struct session *session, const char *key, const void *value, size_t size, bool put,
               struct asking *asking, struct error *err)
{
    Gimbal__ExecutorRendezvous rendezvous = GIMBAL__EXECUTOR_RENDEZVOUS__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    pthread_mutex_lock(&session->lock);
    *asking = (struct asking){.id = ++session->next_id, .next = session->asking};
    session->asking = asking;
    pthread_mutex_unlock(&session->lock);

    rendezvous.id = asking->id;
    rendezvous.key = (char *)key;
    rendezvous.put = put;
    rendezvous.value = (ProtobufCBinaryData){.len = size, .data = (uint8_t *)value};
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_RENDEZVOUS;
    event.rendezvous = &rendezvous;
    session_send(session, &event);

    pthread_mutex_lock(&session->lock);
    while (!asking->answered && !is_over(session) && !session->gave_up)
        pthread_cond_wait(&session->changed, &session->lock);
    struct asking **link = &session->asking;
    while (*link != asking)
        link = &(*link)->next;
    *link = asking->next;
    bool answered = asking->answered;
    pthread_mutex_unlock(&session->lock);
    return answered ? 0 : error_set(err, -ECANCELED, "cancelled while meeting the other ranks");
}

static int put(void *context, const char *key, const void *value, size_t size, struct error *err)
{
    struct asking asking;
    int rc = ask(context, key, value, size, true, &asking, err);
    free(asking.value);
    return rc;
}

static int get(void *context, const char *key, void *value, size_t *size, struct error *err)
{
    struct asking asking;
    int rc = ask(context, key, NULL, 0, false, &asking, err);
    if (rc == 0 && asking.size > *size)
        rc = error_set(err, -EMSGSIZE, "the value of '%s' has %zu bytes, room is for %zu", key,
                       asking.size, *size);
    if (rc == 0) {
        memcpy(value, asking.value, asking.size);
        *size = asking.size;
    }
    free(asking.value);
    return rc;
}

struct rendezvous session_rendezvous(struct session *session)
{
    return (struct rendezvous){session, put, get};
}

static void answer(struct session *session, const Gimbal__ExecutorRendezvous *rendezvous)
{
    pthread_mutex_lock(&session->lock);
    for (struct asking *asking = session->asking; asking; asking = asking->next) {
        if (asking->id != rendezvous->id || asking->answered)
            continue;
        asking->size = rendezvous->value.len;
        asking->value = xcalloc(1, asking->size);
        if (asking->size) /* else there are no data to copy from */
            memcpy(asking->value, rendezvous->value.data, asking->size);
        asking->answered = true;
    }
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

/* What is repeated says nothing new. */
static void raise_to(uint64_t *number, uint64_t to)
{
    if (to > *number)
        *number = to;
}

/* Under the lock. */
static void take_listed(struct session *session, const Gimbal__CheckpointListed *message)
{
    forget_listed(session);
    session->listed_step = message->step;
    session->listed.names = xcalloc(message->n_listed, sizeof(char *));
    for (; session->listed.count < message->n_listed; session->listed.count++)
        session->listed.names[session->listed.count] =
            xstrdup(message->listed[session->listed.count]);
}

static void obey(struct session *session, const Gimbal__ExecutorCommand *command)
{
    if (command->command_case == GIMBAL__EXECUTOR_COMMAND__COMMAND_RENDEZVOUS) {
        answer(session, command->rendezvous);
        return;
    }
    pthread_mutex_lock(&session->lock);
    switch (command->command_case) {
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_GO:
        session->go = true;
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_CANCEL:
        if (command->cancel->save && session->saves)
            session->stop = true;
        else
            cancel_locked(session);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_QUIESCE:
        session->quiesced = true;
        abort_all(session);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_PAUSE:
        raise_to(&session->paused, command->pause->number);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_RESUME:
        raise_to(&session->resumed, command->resume->number);
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

/* Whatever was said of the last epoch is over; questions go on counting, so that a late answer
 * answers none of the new ones. */
static void renew(struct session *session, Gimbal__ExecutorCommand *command)
{
    pthread_mutex_lock(&session->lock);
    message_free((ProtobufCMessage *)session->first);
    session->first = command;
    session->go = session->quiesced = session->gave_up = false;
    session->beginning = (struct beginning){0};
    session->stop = session->saves = false;
    session->steps = session->paused = session->resumed = session->listed_step = 0;
    forget_listed(session);
    pthread_mutex_unlock(&session->lock);
    session_name(session, command->assignment->job, command->assignment->epoch);
}

int session_assignment(struct session *session, const Gimbal__Assignment **out, struct error *err)
{
    for (;;) {
        ProtobufCMessage *message;
        int rc = channel_read(&session->channel, &gimbal__executor_command__descriptor, -1,
                              &message, err);
        if (rc < 0)
            return rc;
        Gimbal__ExecutorCommand *command = (Gimbal__ExecutorCommand *)message;
        if (command->command_case == GIMBAL__EXECUTOR_COMMAND__COMMAND_ASSIGNMENT) {
            renew(session, command);
            *out = command->assignment;
            return 0;
        }
        message_free(message);
        if (!session->first)
            return error_set(err, -EPROTO, "the first command is not an assignment");
    }
}

/* Nobody is there to train for. */
static void lose(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    session->gone = true;
    cancel_locked(session);
    pthread_mutex_unlock(&session->lock);
}

void session_serve(struct session *session)
{
    for (;;) {
        struct pollfd wait[] = {{.fd = session->channel.fd, .events = POLLIN},
                                {.fd = session->finish_fd, .events = POLLIN}};
        if (poll(wait, 2, -1) < 0 && errno != EINTR)
            break;
        if (wait[1].revents)
            break;
        ProtobufCMessage *message;
        int rc;
        while ((rc = channel_read(&session->channel, &gimbal__executor_command__descriptor, 0,
                                  &message, NULL)) > 0) {
            obey(session, (const Gimbal__ExecutorCommand *)message);
            message_free(message);
        }
        if (rc < 0) {
            lose(session);
            break;
        }
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

int session_wait_go(struct session *session, struct error *err)
{
    pthread_mutex_lock(&session->lock);
    while (!session->go && !is_over(session) && !session->stop)
        pthread_cond_wait(&session->changed, &session->lock);
    bool go = session->go && !is_over(session);
    pthread_mutex_unlock(&session->lock);
    return go ? 0 : error_set(err, -ECANCELED, "cancelled before the first step");
}

bool session_wants_pause(struct session *session, uint64_t pauses)
{
    pthread_mutex_lock(&session->lock);
    bool wants = session->paused > pauses;
    pthread_mutex_unlock(&session->lock);
    return wants;
}

void session_saves(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    session->saves = true;
    pthread_mutex_unlock(&session->lock);
}

bool session_wants_stop(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    bool wants = session->stop;
    pthread_mutex_unlock(&session->lock);
    return wants;
}

int session_wait_resumed(struct session *session, uint64_t number, struct error *err)
{
    pthread_mutex_lock(&session->lock);
    while (session->resumed < number && !is_over(session) && !session->stop)
        pthread_cond_wait(&session->changed, &session->lock);
    bool resumed = session->resumed >= number, over = is_over(session);
    pthread_mutex_unlock(&session->lock);
    return resumed ? 0 : over ? error_set(err, -ECANCELED, "cancelled while it was paused") : 1;
}

int session_stage(void *context, const struct saver_report *report, struct saver_listed *listed,
                  struct error *err)
{
    struct session *session = context;
    session_tell_staged(session, report);
    pthread_mutex_lock(&session->lock);
    while (session->listed_step < report->step && !is_over(session) && !session->gave_up)
        pthread_cond_wait(&session->changed, &session->lock);
    bool taken = session->listed_step >= report->step;
    *listed = taken ? session->listed : (struct saver_listed){0};
    if (taken)
        session->listed = (struct saver_listed){0};
    pthread_mutex_unlock(&session->lock);
    return taken ? 0 : error_set(err, -ECANCELED, "cancelled before it was listed");
}

void session_give_up(void *context)
{
    struct session *session = context;
    pthread_mutex_lock(&session->lock);
    session->gave_up = true;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

void session_stepped(struct session *session, uint64_t steps)
{
    pthread_mutex_lock(&session->lock);
    raise_to(&session->steps, steps);
    pthread_mutex_unlock(&session->lock);
}

uint64_t session_steps(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    uint64_t steps = session->steps;
    pthread_mutex_unlock(&session->lock);
    return steps;
}
