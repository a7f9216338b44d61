/* session.h - the executor's side of the channel to the process that started it.
 *
 * Ranks report and ask through it from their own threads; one thread, the main one, reads what
 * the other side sends and hands answers out. When the other side is gone, everything ends. */
#ifndef WORKER_EXECUTOR_SESSION_SESSION_H
#define WORKER_EXECUTOR_SESSION_SESSION_H

#include "proto/executor.pb-c.h"
#include "worker/checkpoint/saver.h"
#include "worker/collectives/collective.h"
#include "worker/trainer/trainer.h"

struct session;

/* Takes the descriptor. */
struct session *session_create(int fd);
void session_destroy(struct session *session);

/* SIGTERM comes to the session from now on; before other threads are started. */
void session_listen(struct session *session);

/* What the ranks report is of this job and epoch; texts are copied. */
void session_name(struct session *session, const char *job, uint64_t epoch);
char *session_job(const struct session *session); /* lent */
uint64_t session_epoch(const struct session *session);
/* The files of this source, and of these weights where there are any, are part of what ready says;
 * each is read once, here. */
void session_reads(struct session *session, const struct data_source *data,
                   const struct pretrained *pretrained);
size_t session_files(const struct session *session, const struct data_file **out); /* lent */
/* Send an event; a broken channel ends the session. Any thread. */
void session_send(struct session *session, Gimbal__ExecutorEvent *event);
/* The reporter of ranks in this process. With `wait`, ready returns when the other side says go. */
struct reporter session_reporter(struct session *session, bool wait);
/* The epoch's key-value store at the other side. */
struct rendezvous session_rendezvous(struct session *session);
/* How a rank's state came about is part of what ready says. */
void session_begins(struct session *session, const struct beginning *beginning);
struct beginning session_beginning(struct session *session);
/* A rank has finished so many steps. */
void session_stepped(struct session *session, uint64_t steps);
uint64_t session_steps(struct session *session);
/* This rank's end: cause and reason go to the other side, and whether the process stays and keeps
 * its state. */
void session_stopped(struct session *session, int rank, int rc, bool keeps,
                     const struct error *err);

/* Until the other side says go; -ECANCELED when it cancels instead. */
int session_wait_go(struct session *session, struct error *err);
/* It has. */
bool session_goes(struct session *session);

/* Whether more pauses were asked for than the rank has been through. */
bool session_wants_pause(struct session *session, uint64_t pauses);
/* Its ranks write checkpoints: one that is asked to save and stop does, others are cancelled. */
void session_saves(struct session *session);
/* Whether they are to stop with a checkpoint. */
bool session_wants_stop(struct session *session);
/* And the process is to end then: no epoch follows. */
bool session_wants_end(struct session *session);
/* By SIGTERM. */
bool session_terminated(struct session *session);
/* Until the other side says that pause `number` is over: 0, or 1 when they are to stop with a
 * checkpoint instead; -ECANCELED when it cancels. */
int session_wait_resumed(struct session *session, uint64_t number, struct error *err);

/* Tell that a checkpoint is staged, or why it is not, and wait until the other side has taken it;
 * -ECANCELED when it cancels instead, or when this rank gave up. As saver_config.staged, with the
 * session as its context. */
int session_stage(void *session, const struct saver_report *report, struct saver_listed *listed,
                  struct error *err);
void session_tell_staged(struct session *session, const struct saver_report *report);
void session_complain(void *session, const char *words);
/* This rank ends: what waits for a rendezvous or for a checkpoint to be listed ends too. */
void session_give_up(void *session);

/* Fabrics that a cancel, or leaving the epoch, aborts, so that blocked calls return. */
void session_guard(struct session *session, const struct collectives *collectives,
                   struct fabric *fabric);
void session_unguard(struct session *session, struct fabric *fabric);
bool session_cancelled(struct session *session);
/* The other side has asked to leave this epoch. */
bool session_quiesced(struct session *session);
/* One or the other: no step of this epoch is wanted any more. */
bool session_ended(struct session *session);
/* Abort all fabrics, as a cancel does, but say that it was a fault: one rank of several here
 * has failed and the others must not wait for it. */
void session_abort(struct session *session);

/* Wait for an assignment, which begins an epoch; lent until the next one, or the session's end.
 * The first command has to be one; what comes behind the end of an epoch is passed over. */
int session_assignment(struct session *session, const Gimbal__Assignment **out, struct error *err);
/* Serve the channel until session_finish is called by another thread. */
void session_serve(struct session *session);
void session_finish(struct session *session);

#endif
