/* session.c - one mutex around what the other side wants and ranks report, a condition for whoever
 * waits, and one thread that reads the channel. Reports themselves are made in report.c. */
#include "worker/executor/session.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/message/channel.h"
#include "common/message/message.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Between two tries to save the last step. */
#define UNSAVED_PAUSE_S 1.0
#define UNSAVED_PAUSE_S_MAX 10.0

/* A rank's thread that waits for the answer to a rendezvous; on that thread's stack. */
struct asking {
    uint64_t id;
    bool answered;
    uint8_t *value;
    size_t size;
    struct asking *next;
};

/* A fabric to be aborted when the session ends. */
struct guarded {
    const struct collectives *collectives;
    struct fabric *fabric;
};

/* What the ranks are to do after a step, with a checkpoint. */
enum stop {
    STOP_NOT,
    STOP_AND_STAY, /* the process waits for another epoch */
    STOP_AND_END,
};

/* What is known of an epoch, which the next one begins without. */
struct session_epoch {
    bool go, quiesced, gave_up;
    bool saves; /* the ranks write checkpoints */
    enum stop stop;
    struct beginning beginning;
    uint64_t steps;                               /* of the rank that has finished most */
    double loss, held_out_loss, held_out_targets; /* see session_state */
    /* Number of the newest pause requested, and of the newest that is over. */
    uint64_t paused, resumed;
    uint64_t answers;           /* of the other side, to reports of checkpoints */
    struct saver_listed listed; /* the newest of them */
    double patience_s, pause_s; /* see session_unsaved */
    double unsaved_s;           /* when the last step could not be saved first; 0: not yet */
};

struct session {
    struct channel channel;
    int finish_fd; /* eventfd, written by session_finish */
    int signal_fd; /* signalfd for SIGTERM; -1: not listening */
    pid_t parent;
    /* write_lock: for writing to the channel. lock: for all fields below, except gone and between,
     * and job, epoch and files, which are only set while no ranks run. */
    pthread_mutex_t write_lock, lock;
    pthread_cond_t changed;
    struct scalars *scalars; /* of the thread of rank 0 */
    bool gone;      /* the other side has closed; used by the reader only, like `between` */
    bool between;   /* waiting for an assignment, between two epochs */
    bool cancelled; /* for good */
    struct session_epoch now;
    bool terminated; /* SIGTERM from somebody other than the parent */
    char *job;
    uint64_t epoch, next_id;
    struct data_file *files;
    size_t file_count, data_count; /* the data come first */
    struct asking *asking;
    struct guarded *guarded;
    size_t guarded_count, guarded_capacity;
    struct past {
        struct step_found steps[SESSION_PAST]; /* oldest first */
        size_t count;
    } past;
    Gimbal__ExecutorCommand *first; /* the message that holds this epoch's assignment */
};

/* Repeated or outdated requests have no effect. */
static void raise_to(uint64_t *number, uint64_t to)
{
    if (to > *number)
        *number = to;
}

/* Whether this epoch has been cancelled or is to be left, so that nothing in it is worth waiting
 * for. This and the next three need the lock. */
static bool is_over(const struct session *session)
{
    return session->cancelled || session->now.quiesced;
}

/* Abort all guarded fabrics, and wake everybody who waits for the other side. */
static void abort_all(struct session *session)
{
    for (size_t i = 0; i < session->guarded_count; i++)
        session->guarded[i].collectives->abort(session->guarded[i].fabric);
    pthread_cond_broadcast(&session->changed);
}

static void cancel_for_good(struct session *session)
{
    session->cancelled = true;
    abort_all(session);
}

static void forget_listed(struct session *session)
{
    for (size_t i = 0; i < session->now.listed.count; i++)
        free(session->now.listed.names[i]);
    free(session->now.listed.names);
    session->now.listed = (struct saver_listed){0};
}

struct session *session_create(int fd)
{
    struct session *session = xcalloc(1, sizeof *session);
    channel_open(&session->channel, fd);
    session->finish_fd = eventfd(0, EFD_CLOEXEC);
    session->signal_fd = -1;
    pthread_mutex_init(&session->write_lock, NULL);
    pthread_mutex_init(&session->lock, NULL);
    pthread_condattr_t monotonic; /* as clock_s() */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&session->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    session->job = xstrdup("");
    session->now.loss = NAN;
    return session;
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
    session->file_count = session->data_count = data_files(data, &session->files);
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

size_t session_data_files(const struct session *session, const struct data_file **out)
{
    *out = session->files;
    return session->data_count;
}

size_t session_files(const struct session *session, const struct data_file **out)
{
    *out = session->files;
    return session->file_count;
}

struct session_state session_state(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    const struct session_epoch *now = &session->now;
    struct session_state state = {
        .goes = now->go,
        .quiesced = now->quiesced,
        .cancelled = session->cancelled,
        .over = is_over(session),
        .terminated = session->terminated,
        .wants_stop = now->stop != STOP_NOT,
        .wants_end = now->stop == STOP_AND_END,
        .pauses = now->paused,
        .steps = now->steps,
        .loss = now->loss,
        .held_out_loss = now->held_out_loss,
        .held_out_targets = now->held_out_targets,
        .beginning = now->beginning,
    };
    pthread_mutex_unlock(&session->lock);
    return state;
}

void session_saves(struct session *session, double patience_s)
{
    pthread_mutex_lock(&session->lock);
    session->now.saves = true;
    session->now.patience_s = patience_s;
    session->now.pause_s = UNSAVED_PAUSE_S;
    pthread_mutex_unlock(&session->lock);
}

void session_write_scalars(struct session *session, struct scalars *scalars)
{
    session->scalars = scalars;
}

struct scalars *session_scalars(const struct session *session)
{
    return session->scalars;
}

void session_begins(struct session *session, const struct beginning *beginning)
{
    pthread_mutex_lock(&session->lock);
    session->now.beginning = *beginning;
    session->now.loss = beginning->loss;
    pthread_mutex_unlock(&session->lock);
    session_stepped(session, beginning->step);
}

/* Ranks of one process find the same, one after another; an epoch may begin before the last step.
 */
void session_found(struct session *session, const struct step_found *found)
{
    pthread_mutex_lock(&session->lock);
    struct past *past = &session->past;
    session->now.loss = found->result.loss;
    while (past->count > 0 && past->steps[past->count - 1].step >= found->step)
        past->count--;
    if (past->count == SESSION_PAST)
        memmove(past->steps, past->steps + 1, --past->count * sizeof *past->steps);
    past->steps[past->count++] = *found;
    pthread_mutex_unlock(&session->lock);
}

size_t session_past(struct session *session, bool of_this_epoch, uint64_t step,
                    struct step_found out[SESSION_PAST])
{
    size_t count = 0;
    pthread_mutex_lock(&session->lock);
    for (size_t i = 0; session->first && i < session->past.count; i++) {
        const struct step_found *found = &session->past.steps[i];
        if (found->step <= step && (found->epoch == session->epoch) == of_this_epoch)
            out[count++] = *found;
    }
    pthread_mutex_unlock(&session->lock);
    return count;
}

void session_evaluated(struct session *session, double loss, double targets)
{
    pthread_mutex_lock(&session->lock);
    session->now.held_out_loss = loss;
    session->now.held_out_targets = targets;
    pthread_mutex_unlock(&session->lock);
}

void session_stepped(struct session *session, uint64_t steps)
{
    pthread_mutex_lock(&session->lock);
    raise_to(&session->now.steps, steps);
    pthread_mutex_unlock(&session->lock);
}

void session_send(struct session *session, Gimbal__ExecutorEvent *event)
{
    pthread_mutex_lock(&session->write_lock);
    int rc = channel_write(&session->channel, &event->base, NULL);
    pthread_mutex_unlock(&session->write_lock);
    if (rc == 0)
        return;
    pthread_mutex_lock(&session->lock);
    cancel_for_good(session);
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

void session_abort(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    abort_all(session);
    pthread_mutex_unlock(&session->lock);
}

/* ---- the epoch's key-value store: ranks ask, the other side answers when it can ---- */

/* Ask the other side and wait for the answer; asking->value is the caller's to free, even on
 * failure. */
static int session_ask(struct session *session, const char *key, const void *value, size_t size,
                       bool put, struct asking *asking, struct error *err)
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
    while (!asking->answered && !is_over(session) && !session->now.gave_up)
        pthread_cond_wait(&session->changed, &session->lock);
    struct asking **link = &session->asking;
    while (*link != asking)
        link = &(*link)->next;
    *link = asking->next;
    bool answered = asking->answered;
    pthread_mutex_unlock(&session->lock);
    return answered ? 0 : error_set(err, -ECANCELED, "cancelled while meeting the other ranks");
}

static int session_put(void *context, const char *key, const void *value, size_t size,
                       struct error *err)
{
    struct asking asking;
    int rc = session_ask(context, key, value, size, true, &asking, err);
    free(asking.value);
    return rc;
}

static int session_get(void *context, const char *key, void *value, size_t *size, struct error *err)
{
    struct asking asking;
    int rc = session_ask(context, key, NULL, 0, false, &asking, err);
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
    return (struct rendezvous){session, session_put, session_get};
}

/* Hand an answer to the thread that asked. */
static void answer_rank(struct session *session, const Gimbal__ExecutorRendezvous *rendezvous)
{
    pthread_mutex_lock(&session->lock);
    for (struct asking *asking = session->asking; asking; asking = asking->next) {
        if (asking->id != rendezvous->id || asking->answered)
            continue;
        asking->size = rendezvous->value.len;
        asking->value = xcalloc(1, asking->size);
        if (asking->size) /* memcpy must not be given the NULL of an empty value */
            memcpy(asking->value, rendezvous->value.data, asking->size);
        asking->answered = true;
    }
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

/* ---- what ranks wait for between two steps ---- */

int session_wait_go(struct session *session, struct error *err)
{
    pthread_mutex_lock(&session->lock);
    while (!session->now.go && !is_over(session) && session->now.stop == STOP_NOT)
        pthread_cond_wait(&session->changed, &session->lock);
    bool go = session->now.go && !is_over(session);
    pthread_mutex_unlock(&session->lock);
    return go ? 0 : error_set(err, -ECANCELED, "cancelled before the first step");
}

int session_wait_resumed(struct session *session, uint64_t number, struct error *err)
{
    pthread_mutex_lock(&session->lock);
    while (session->now.resumed < number && !is_over(session) && session->now.stop == STOP_NOT)
        pthread_cond_wait(&session->changed, &session->lock);
    bool resumed = session->now.resumed >= number, over = is_over(session);
    pthread_mutex_unlock(&session->lock);
    return resumed ? 0 : over ? error_set(err, -ECANCELED, "cancelled while it was paused") : 1;
}

int session_stage(void *context, const struct saver_report *report, struct saver_listed *listed,
                  struct error *err)
{
    struct session *session = context;
    pthread_mutex_lock(&session->lock);
    uint64_t answers = session->now.answers; /* one report at a time */
    pthread_mutex_unlock(&session->lock);
    session_tell_staged(session, report);
    pthread_mutex_lock(&session->lock);
    while (session->now.answers == answers && !is_over(session) && !session->now.gave_up)
        pthread_cond_wait(&session->changed, &session->lock);
    bool taken = session->now.answers > answers;
    *listed = taken ? session->now.listed : (struct saver_listed){0};
    if (taken)
        session->now.listed = (struct saver_listed){0};
    pthread_mutex_unlock(&session->lock);
    return taken ? 0 : error_set(err, -ECANCELED, "cancelled before it was listed");
}

/* Wait for this time of clock_s(), or a change. Needs the lock. */
static void await_until(struct session *session, double until_s)
{
    struct timespec until = {.tv_sec = (time_t)until_s};
    until.tv_nsec = (long)((until_s - (double)until.tv_sec) * 1e9);
    pthread_cond_timedwait(&session->changed, &session->lock, &until);
}

/* Whoever is asked to stop has others who may go on from its memory, except where there are no
 * others: a process without an assignment. */
int session_unsaved(void *context, struct error *err)
{
    struct session *session = context;
    struct session_epoch *now = &session->now;
    pthread_mutex_lock(&session->lock);
    double again_s = clock_s() + now->pause_s;
    if (now->unsaved_s == 0)
        now->unsaved_s = clock_s();
    double end_s = now->unsaved_s + now->patience_s;
    now->pause_s = fmin(2 * now->pause_s, UNSAVED_PAUSE_S_MAX);
    while (!is_over(session) && now->stop == STOP_NOT && clock_s() < fmin(again_s, end_s))
        await_until(session, fmin(again_s, end_s));
    bool over = is_over(session), stops = now->stop != STOP_NOT, alone = !session->first;
    pthread_mutex_unlock(&session->lock);
    if (over)
        return error_set(err, -ECANCELED, "cancelled before the last step was saved");
    if (stops)
        return alone ? SAVER_GIVE_UP : SAVER_STOP;
    return clock_s() < end_s ? SAVER_AGAIN : SAVER_GIVE_UP;
}

void session_give_up(void *context)
{
    struct session *session = context;
    pthread_mutex_lock(&session->lock);
    session->now.gave_up = true;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

/* ---- SIGTERM ----
 *
 * From the parent, which has a command for stopping with a checkpoint, SIGTERM means: end now. From
 * anybody else it asks for what that command asks for: stop after a step with a checkpoint. If
 * there is nothing to save, or if it comes again, the process ends, and the log says why.
 *
 * If a stranger's signal stops several ranks, they end at about the same time, and the parent may
 * send its own SIGTERM when it hears of the first. A process that was already asked ignores that
 * and comes to its own end, because only it can report why all of them have stopped. */

void session_listen(struct session *session)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    session->parent = getppid();
    session->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* End as SIGTERM does by default. */
static void end_by_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Why nothing can be saved; NULL: it can. Needs the lock. A process without an assignment needs no
 * go. */
static const char *saving_obstacle(const struct session *session)
{
    if (session->terminated)
        return "it was asked again before the checkpoint was written";
    if (session->between)
        return "it is between two epochs";
    if (!session->now.saves)
        return "the job is saved nowhere";
    if (is_over(session))
        return "it leaves its epoch";
    return session->first && !session->now.go ? "it has not begun to train" : NULL;
}

/* Read a signal from signal_fd; may end the process. */
static void session_take_signal(struct session *session)
{
    struct signalfd_siginfo info;
    if (read(session->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if ((pid_t)info.ssi_pid == session->parent) {
        if (!session_state(session).terminated)
            end_by_signal();
        return;
    }
    pthread_mutex_lock(&session->lock);
    const char *why_not = saving_obstacle(session);
    if (why_not)
        log_line(LOG_WARN, "SIGTERM from process %" PRIu32 ": it ends, and saves nothing: %s",
                 info.ssi_pid, why_not);
    else
        log_line(LOG_WARN,
                 "SIGTERM from process %" PRIu32
                 ": all ranks stop after a step and save a checkpoint",
                 info.ssi_pid);
    session->terminated = true;
    if (session->now.stop == STOP_NOT)
        session->now.stop = STOP_AND_END;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
    if (why_not)
        end_by_signal();
}

/* ---- the only reader of the channel: commands of the other side ---- */

/* Needs the lock. */
static void obey_listed(struct session *session, const Gimbal__CheckpointListed *message)
{
    forget_listed(session);
    session->now.answers++;
    session->now.listed.names = xcalloc(message->n_listed, sizeof(char *));
    for (; session->now.listed.count < message->n_listed; session->now.listed.count++)
        session->now.listed.names[session->now.listed.count] =
            xstrdup(message->listed[session->now.listed.count]);
}

/* Leave the epoch, after a step that is saved or at once. Needs the lock. */
static void obey_leave(struct session *session, bool save)
{
    if (save && session->now.saves && session->now.stop == STOP_NOT) {
        session->now.stop = STOP_AND_STAY;
    } else if (!save) {
        session->now.quiesced = true;
        abort_all(session);
    }
}

/* End the process, after a step that is saved or at once. Needs the lock. */
static void obey_cancel(struct session *session, bool save)
{
    if (save && session->now.saves)
        session->now.stop = STOP_AND_END;
    else
        cancel_for_good(session);
}

static void session_obey(struct session *session, const Gimbal__ExecutorCommand *command)
{
    if (command->command_case == GIMBAL__EXECUTOR_COMMAND__COMMAND_RENDEZVOUS) {
        answer_rank(session, command->rendezvous);
        return;
    }
    if (command->command_case == GIMBAL__EXECUTOR_COMMAND__COMMAND_FULL_DISK) {
        disk_space_deny(command->full_disk->for_ms);
        return;
    }
    pthread_mutex_lock(&session->lock);
    switch (command->command_case) {
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_GO:
        session->now.go = true;
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_CANCEL:
        obey_cancel(session, command->cancel->save);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_QUIESCE:
        obey_leave(session, command->quiesce->save);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_PAUSE:
        raise_to(&session->now.paused, command->pause->number);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_RESUME:
        raise_to(&session->now.resumed, command->resume->number);
        break;
    case GIMBAL__EXECUTOR_COMMAND__COMMAND_LISTED:
        obey_listed(session, command->listed);
        break;
    default:
        break;
    }
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

/* Begin a new epoch: forget everything that was said about the last one. Request ids keep counting,
 * so that a late answer cannot be taken for one to a new request. */
static void begin_epoch(struct session *session, Gimbal__ExecutorCommand *command)
{
    pthread_mutex_lock(&session->lock);
    message_free((ProtobufCMessage *)session->first);
    session->first = command;
    forget_listed(session);
    session->now = (struct session_epoch){.loss = NAN};
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
    while (!session_state(session).terminated) {
        Gimbal__ExecutorCommand *command = NULL;
        session->between = true;
        int rc = next_command(session, &command, err);
        session->between = false;
        if (rc < 0)
            return rc;
        if (command->command_case == GIMBAL__EXECUTOR_COMMAND__COMMAND_ASSIGNMENT) {
            begin_epoch(session, command);
            *out = command->assignment;
            return 0;
        }
        if (command->command_case == GIMBAL__EXECUTOR_COMMAND__COMMAND_FULL_DISK)
            disk_space_deny(command->full_disk->for_ms);
        message_free(&command->base);
        if (!session->first)
            return error_set(err, -EPROTO, "the first command is not an assignment");
    }
    return error_set(err, -ECANCELED, "ended by SIGTERM between two epochs");
}

/* The other side is gone, so there is nobody to train for. */
static void lose_other_side(struct session *session)
{
    session->gone = true;
    pthread_mutex_lock(&session->lock);
    cancel_for_good(session);
    pthread_mutex_unlock(&session->lock);
}

void session_serve(struct session *session)
{
    Gimbal__ExecutorCommand *command = NULL;
    int rc;
    while ((rc = next_command(session, &command, NULL)) != 0) {
        if (rc < 0) {
            lose_other_side(session);
            continue;
        }
        session_obey(session, command);
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
