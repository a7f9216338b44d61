/* internal.h - the state of a session, shared by its files, and the lock around it. */
#ifndef WORKER_EXECUTOR_SESSION_INTERNAL_H
#define WORKER_EXECUTOR_SESSION_INTERNAL_H

#include "common/channel/channel.h"
#include "worker/executor/session/session.h"

#include <pthread.h>
#include <sys/types.h>

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
    uint64_t steps; /* of the rank that has finished most */
    /* Number of the newest pause requested, and of the newest that is over. */
    uint64_t paused, resumed;
    uint64_t listed_step; /* step of the newest checkpoint that the other side has listed */
    struct saver_listed listed;
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
    bool gone;      /* the other side has closed; used by the reader only, like `between` */
    bool between;   /* waiting for an assignment, between two epochs */
    bool cancelled; /* for good */
    struct session_epoch now;
    bool terminated; /* SIGTERM from somebody other than the parent */
    char *job;
    uint64_t epoch, next_id;
    struct data_file *files;
    size_t file_count;
    struct asking *asking;
    struct guarded *guarded;
    size_t guarded_count, guarded_capacity;
    Gimbal__ExecutorCommand *first; /* the message that holds this epoch's assignment */
};

/* The functions below need the lock, unless they say otherwise. Whether this epoch has been
 * cancelled or is to be left, so that nothing in it is worth waiting for. */
bool session_is_over(const struct session *session);
/* Abort all guarded fabrics, and wake everybody who waits for the other side. */
void session_abort_locked(struct session *session);
/* Cancel for good, and abort. */
void session_cancel_locked(struct session *session);
/* Free the list of checkpoints. */
void session_forget_listed(struct session *session);

/* session_signal.c: read a signal from signal_fd. Takes the lock itself; may end the process. */
void session_take_signal(struct session *session);

/* session_meet.c: hand an answer to the thread that asked. Takes the lock itself. */
void session_answer(struct session *session, const Gimbal__ExecutorRendezvous *rendezvous);

/* Repeated or outdated requests have no effect. */
static inline void raise_to(uint64_t *number, uint64_t to)
{
    if (to > *number)
        *number = to;
}

#endif
