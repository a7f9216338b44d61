/* internal.h - what the parts of a session share: its state, and the lock around it. */
#ifndef WORKER_EXECUTOR_SESSION_INTERNAL_H
#define WORKER_EXECUTOR_SESSION_INTERNAL_H

#include "common/channel/channel.h"
#include "worker/executor/session/session.h"

#include <pthread.h>
#include <sys/types.h>

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
    int signal_fd; /* -1: it does not listen */
    pid_t parent;
    pthread_mutex_t write_lock, lock;
    pthread_cond_t changed;
    bool gone;    /* the other side; of the reader alone, like the next */
    bool between; /* two epochs: it waits for an assignment */
    bool go, cancelled, quiesced, gave_up;
    bool saves, stop; /* stop: with a checkpoint */
    bool leaves;      /* and stay: an epoch follows */
    bool terminated;  /* by SIGTERM */
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

/* Under the lock, all of these. Nothing of this epoch is worth waiting for. */
bool session_is_over(const struct session *session);
/* Whoever waits in a fabric or for the other side looks again. */
void session_abort_locked(struct session *session);
/* Nothing goes on any more. */
void session_cancel_locked(struct session *session);
void session_forget_listed(struct session *session);

/* session_signal.c: what is to be read from signal_fd. Takes the lock; may end the process. */
void session_take_signal(struct session *session);

/* session_meet.c: an answer of the other side, for whoever asked. Takes the lock. */
void session_answer(struct session *session, const Gimbal__ExecutorRendezvous *rendezvous);

/* What is repeated says nothing new. */
static inline void raise_to(uint64_t *number, uint64_t to)
{
    if (to > *number)
        *number = to;
}

#endif
