/* session.h - the executor's side of the channel to the process that started it.
 *
 * Ranks report and ask from threads of their own. One thread, the main one, reads what the other
 * side sends (session_assignment, session_serve) and hands it out. If the other side goes away, the
 * session is cancelled. Unless noted, functions may be called from any thread. */
#ifndef WORKER_EXECUTOR_SESSION_H
#define WORKER_EXECUTOR_SESSION_H

#include "common/profile/profile.h"
#include "proto/executor.pb-c.h"
#include "worker/checkpoint/saver.h"
#include "worker/collectives/collective.h"
#include "worker/scalars/scalars.h"
#include "worker/trainer/trainer.h"

struct session;

/* Takes the descriptor. */
struct session *session_create(int fd);
/* Accepts NULL. */
void session_destroy(struct session *session);

/* Handle SIGTERM in the session from here on. To be called before other threads are started, since
 * it blocks the signal. */
void session_listen(struct session *session);

/* Set the job (copied) and epoch that ranks report about. Only before ranks are started, or between
 * two epochs, because ranks read both without a lock. session_assignment calls this itself. */
void session_name(struct session *session, const char *job, uint64_t epoch);
char *session_job(const struct session *session); /* lent until the next session_name */
uint64_t session_epoch(const struct session *session);
/* Note the files of the data and, if not NULL, of the weights and the tokenizer: they are reported
 * with ready. Each file is read once, here. To be called once, before ranks are started. */
void session_reads(struct session *session, const struct data_source *data,
                   const struct pretrained *pretrained, const struct tokenizer *tokenizer);
size_t session_files(const struct session *session, const struct data_file **out); /* lent */
/* Those of them that are the data. */
size_t session_data_files(const struct session *session, const struct data_file **out);
/* Send an event. If the channel is broken, the session is cancelled. */
void session_send(struct session *session, Gimbal__ExecutorEvent *event);
/* What rank 0 of the epoch writes for other programs; NULL: nothing. Lent, and used on its thread
 * only. */
void session_write_scalars(struct session *session, struct scalars *scalars);
struct scalars *session_scalars(const struct session *session);
/* report.c: a reporter for the ranks of this process. With `wait`, its ready blocks until the other
 * side says go. */
struct reporter session_reporter(struct session *session, bool wait);
/* The epoch's key-value store, which the other side keeps. put and get block; -ECANCELED if the
 * epoch ends, -EMSGSIZE if a value does not fit. */
struct rendezvous session_rendezvous(struct session *session);
/* How a rank's state came about, which is reported with ready. */
void session_begins(struct session *session, const struct beginning *beginning);
/* Note that a rank has finished this many steps. */
void session_stepped(struct session *session, uint64_t steps);
/* What came of a step, and of an evaluation after the newest one: all ranks know the same. */
struct step_found {
    uint64_t epoch, step;
    struct step_result result;
    double seconds;
};
void session_found(struct session *session, const struct step_found *found);
/* The newest steps that this process has found, in order, of this epoch or of earlier ones, up to
 * this step. Returns their number; 0 in a process without an assignment, which loses no rank alone.
 */
#define SESSION_PAST 64
size_t session_past(struct session *session, bool of_this_epoch, uint64_t step,
                    struct step_found out[SESSION_PAST]);
void session_evaluated(struct session *session, double loss, double targets);
/* struct links' told_cb (report.c): the cost of a link to another rank's host. */
void session_tell_link(void *session, int rank, int peer, bool in_devices,
                       const struct hardware_link *link);
/* How a rank has ended. */
struct rank_end {
    int rc;                  /* 0: it is done */
    const struct error *err; /* why, if rc < 0 */
    bool keeps;              /* its process stays and keeps the state */
    bool finished;           /* with rc 0: nothing of the job is left to do, as far as it knows */
};
/* report.c: report it. */
void session_stopped(struct session *session, int rank, const struct rank_end *end);

/* What is known of the epoch at this moment. */
struct session_state {
    bool goes;       /* the other side has said go */
    bool quiesced;   /* it has asked to leave this epoch */
    bool cancelled;  /* for good */
    bool over;       /* one of these two: no further step of this epoch is wanted */
    bool terminated; /* SIGTERM came from somebody other than the parent */
    bool wants_stop; /* the ranks are to stop after a step, with a checkpoint, */
    bool wants_end;  /* and the process then ends, because no epoch follows */
    uint64_t pauses; /* number of those that were requested */
    uint64_t steps;  /* of the rank that has finished most */
    double loss;     /* of the newest of them; NaN: unknown */
    double held_out_loss, held_out_targets; /* of the newest evaluation of this epoch; 0: none */
    struct beginning beginning;
};
struct session_state session_state(struct session *session);

/* Block until the other side says go; -ECANCELED if the epoch ends or is to stop first. */
int session_wait_go(struct session *session, struct error *err);
/* Note that the ranks write checkpoints, and for how many seconds they try to write the last one. A
 * request to save and stop is then honoured; without, it cancels. */
void session_saves(struct session *session, double patience_s);
/* Block until the other side says that pause `number` is over: 0. Returns 1 if the ranks are to
 * stop with a checkpoint instead, -ECANCELED if the epoch ends. */
int session_wait_resumed(struct session *session, uint64_t number, struct error *err);

/* saver_config.staged for ranks of a cluster; the context is the session. Report that a checkpoint
 * is staged, or why it is not, and block until the other side has listed it. *listed is then the
 * caller's. -ECANCELED if the epoch ends, or this rank gives up. */
int session_stage(void *session, const struct saver_report *report, struct saver_listed *listed,
                  struct error *err);
/* saver_config.unsaved; the context is the session. */
int session_unsaved(void *session, struct error *err);
/* report.c: report a checkpoint, or why there is none, without waiting. */
void session_tell_staged(struct session *session, const struct saver_report *report);
/* saver_config.complain: log a warning. */
void session_complain(void *session, const char *words);
/* saver_config.abandon: end waits for a rendezvous or for a checkpoint to be listed, for the rest
 * of the epoch. */
void session_give_up(void *session);

/* Abort this fabric when the epoch is cancelled or left, so that blocked calls return; at once if
 * it is already. To be undone before the fabric is closed. */
void session_guard(struct session *session, const struct collectives *collectives,
                   struct fabric *fabric);
void session_unguard(struct session *session, struct fabric *fabric);
/* Abort all fabrics without cancelling the session: one rank of several here has failed, and the
 * others must not wait for it. */
void session_abort(struct session *session);

/* Block until an assignment arrives, which begins an epoch; *out is lent until the next one or
 * session_destroy. The session's first command must be an assignment (-EPROTO); later, commands
 * that come after the end of an epoch are ignored. -ECANCELED: SIGTERM came meanwhile. */
int session_assignment(struct session *session, const Gimbal__Assignment **out, struct error *err);
/* Read and obey the channel until another thread calls session_finish. */
void session_serve(struct session *session);
void session_finish(struct session *session);

#endif
