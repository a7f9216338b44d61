/* session.c - creating and destroying a session, the facts that ranks report about, and the fabrics
 * that are aborted when it ends. */
#include "worker/executor/session/internal.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct session *session_create(int fd)
{
    struct session *session = xcalloc(1, sizeof *session);
    channel_open(&session->channel, fd);
    session->finish_fd = eventfd(0, EFD_CLOEXEC);
    session->signal_fd = -1;
    pthread_mutex_init(&session->write_lock, NULL);
    pthread_mutex_init(&session->lock, NULL);
    pthread_cond_init(&session->changed, NULL);
    session->job = xstrdup("");
    return session;
}

void session_forget_listed(struct session *session)
{
    for (size_t i = 0; i < session->now.listed.count; i++)
        free(session->now.listed.names[i]);
    free(session->now.listed.names);
    session->now.listed = (struct saver_listed){0};
}

void session_destroy(struct session *session)
{
    if (!session)
        return;
    channel_close(&session->channel);
    close(session->finish_fd);
    if (session->signal_fd >= 0)
        close(session->signal_fd);
    message_free((ProtobufCMessage *)session->first);
    pthread_mutex_destroy(&session->write_lock);
    pthread_mutex_destroy(&session->lock);
    pthread_cond_destroy(&session->changed);
    free(session->job);
    data_files_free(session->files, session->file_count);
    session_forget_listed(session);
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

/* Add files to those of the session; takes the list. */
static void add_files(struct session *session, struct data_file *files, size_t count)
{
    size_t all = session->file_count + count;
    session->files = xrealloc(session->files, all * sizeof *files);
    memcpy(session->files + session->file_count, files, count * sizeof *files);
    session->file_count = all;
    free(files);
}

void session_reads(struct session *session, const struct data_source *data,
                   const struct pretrained *pretrained, const struct tokenizer *tokenizer)
{
    struct data_file *files;
    session->file_count = data_files(data, &session->files);
    if (pretrained) {
        size_t count = pretrained_files(pretrained, &files);
        add_files(session, files, count);
    }
    if (tokenizer && tokenizer_path(tokenizer)) {
        files = xcalloc(1, sizeof *files);
        *files = tokenizer_file(tokenizer);
        add_files(session, files, 1);
    }
}

size_t session_files(const struct session *session, const struct data_file **out)
{
    *out = session->files;
    return session->file_count;
}

void session_begins(struct session *session, const struct beginning *beginning)
{
    pthread_mutex_lock(&session->lock);
    session->now.beginning = *beginning;
    pthread_mutex_unlock(&session->lock);
    session_stepped(session, beginning->step);
}

struct beginning session_beginning(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    struct beginning beginning = session->now.beginning;
    pthread_mutex_unlock(&session->lock);
    return beginning;
}

bool session_is_over(const struct session *session)
{
    return session->cancelled || session->now.quiesced;
}

void session_abort_locked(struct session *session)
{
    for (size_t i = 0; i < session->guarded_count; i++)
        session->guarded[i].collectives->abort(session->guarded[i].fabric);
    pthread_cond_broadcast(&session->changed);
}

void session_cancel_locked(struct session *session)
{
    session->cancelled = true;
    session_abort_locked(session);
}

void session_send(struct session *session, Gimbal__ExecutorEvent *event)
{
    pthread_mutex_lock(&session->write_lock);
    int rc = channel_write(&session->channel, &event->base, NULL);
    pthread_mutex_unlock(&session->write_lock);
    if (rc == 0)
        return;
    pthread_mutex_lock(&session->lock);
    session_cancel_locked(session);
    pthread_mutex_unlock(&session->lock);
}

void session_guard(struct session *session, const struct collectives *collectives,
                   struct fabric *fabric)
{
    pthread_mutex_lock(&session->lock);
    session->guarded = grow(session->guarded, session->guarded_count, &session->guarded_capacity,
                            sizeof *session->guarded);
    session->guarded[session->guarded_count++] = (struct guarded){collectives, fabric};
    if (session_is_over(session))
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

bool session_terminated(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    bool terminated = session->terminated;
    pthread_mutex_unlock(&session->lock);
    return terminated;
}

bool session_quiesced(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    bool quiesced = session->now.quiesced;
    pthread_mutex_unlock(&session->lock);
    return quiesced;
}

bool session_ended(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    bool ended = session_is_over(session);
    pthread_mutex_unlock(&session->lock);
    return ended;
}

void session_abort(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    session_abort_locked(session);
    pthread_mutex_unlock(&session->lock);
}

void session_stepped(struct session *session, uint64_t steps)
{
    pthread_mutex_lock(&session->lock);
    raise_to(&session->now.steps, steps);
    pthread_mutex_unlock(&session->lock);
}

uint64_t session_steps(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    uint64_t steps = session->now.steps;
    pthread_mutex_unlock(&session->lock);
    return steps;
}
