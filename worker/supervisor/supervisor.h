/* supervisor.h - what a worker does about its coordinator and its executors.
 *
 * Decisions only: what happened and a time go in, actions come out, and the caller carries them
 * out in their order. Times are milliseconds of a clock that is passed in and never read here.
 *
 * Two things go on at once. The *link*: Hello, a hardware report, then heartbeats; when any of
 * them fails, all again after a jittered pause, while executors go on. And the *ranks*: each
 * assignment starts one executor, or is given to the one that is on its device and has kept the
 * job's state from an earlier epoch; its way ends in exactly one Stopped report, which is
 * repeated until the coordinator has it. What an executor kept that dies unasked is held for the
 * next one of its job on that device. Ranks that ended are remembered for the rest of the term, so
 * that an assignment that is repeated is answered by the same report and not started anew. */
#ifndef WORKER_SUPERVISOR_SUPERVISOR_H
#define WORKER_SUPERVISOR_SUPERVISOR_H

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/rpc/status.h"
#include "proto/worker.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An executor that was asked to stop has so long before it is killed. */
#define SUPERVISOR_PATIENCE_MS 2000
/* One that leaves its epoch and has its state in a device's memory, which it is to fetch: what is
 * not fetched is lost with the process. Some tens of GB. */
#define SUPERVISOR_FETCH_MS 20000
/* An executor that keeps the state of its job is asked for it within so long, or ends. */
#define SUPERVISOR_KEEP_MS 600000
/* One that was asked to save first, behind a step, has so long for all of it. */
#define SUPERVISOR_SAVING_MS 45000
/* What a stopping worker waits for its last reports to be taken. */
#define SUPERVISOR_FAREWELL_MS 2000
/* Ended ranks that are remembered. */
#define SUPERVISOR_ENDED_MAX 64

struct supervisor;

enum supervisor_action_kind {
    SUPERVISOR_HELLO,     /* call Hello; answer: supervisor_hello_answered */
    SUPERVISOR_REPORT,    /* call ReportHardware; answer: supervisor_report_answered */
    SUPERVISOR_HEARTBEAT, /* call Heartbeat; answer: supervisor_heartbeat_answered */
    SUPERVISOR_WATCH,     /* follow the assignments behind revision, in place of any older watch */
    SUPERVISOR_RECONNECT, /* a new client: this one's instance counts as lost */
    SUPERVISOR_START,     /* start the executor of rank and give it its assignment, and what that of
                             the rank `from` has left */
    SUPERVISOR_ADOPT,     /* give rank's assignment to the executor of the rank `from` */
    SUPERVISOR_QUIESCE,   /* tell the executor of rank to leave its epoch and to stay */
    SUPERVISOR_GO,        /* tell the executor of rank to go */
    SUPERVISOR_PAUSE,     /* tell it to pause, for the time rank->pause */
    SUPERVISOR_RESUME,    /* tell it that the pauses up to rank->resumed are over */
    SUPERVISOR_SAVE,      /* tell it to stop behind a step, with a checkpoint */
    SUPERVISOR_SIGNAL,    /* send signal to the executor of rank */
    SUPERVISOR_READY,     /* call Ready for rank; answer: supervisor_ready_answered */
    SUPERVISOR_PAUSED,    /* call Paused for rank; answer: supervisor_paused_answered */
    SUPERVISOR_STAGED,    /* call Staged for rank; answer: supervisor_staged_answered */
    SUPERVISOR_STOPPED,   /* call Stopped for rank; answer: supervisor_stopped_answered */
    SUPERVISOR_LOG,       /* write text at level */
    SUPERVISOR_DIE,       /* end this worker's process by SIGKILL: a drill */
    SUPERVISOR_QUIT,      /* leave with status; nothing runs any more */
};

struct supervisor_action {
    enum supervisor_action_kind kind;
    uint64_t rank; /* its id here */
    uint64_t from; /* 0: none */
    uint64_t revision;
    int signal;
    int status;
    enum log_level level;
    char text[512];
};

/* Zeroed to begin with; supervisor_actions_clear() empties it and keeps its room. */
struct supervisor_actions {
    struct supervisor_action *items;
    size_t count, capacity;
};
void supervisor_actions_clear(struct supervisor_actions *actions);
void supervisor_actions_finish(struct supervisor_actions *actions);

enum rank_state {
    RANK_WAITING,  /* for its device, which another executor is about to leave */
    RANK_RUNNING,  /* its executor has been started */
    RANK_LEAVING,  /* ... and been asked to leave its epoch */
    RANK_STOPPING, /* ... and been asked to stop */
    RANK_KEPT,     /* it has left its epoch, and its executor keeps the state */
    RANK_ENDED,    /* it has no executor, or none any more */
};

/* A message that the coordinator must have. */
enum delivery { DELIVERY_NONE, DELIVERY_DUE, DELIVERY_SENT, DELIVERY_DONE };

/* One rank of one epoch of a job, lent by supervisor_rank; read it, never write it. */
struct rank {
    uint64_t id;
    char *job;
    uint64_t epoch;
    uint32_t rank;
    uint32_t device_index;
    Gimbal__Assignment *assignment; /* NULL once it was taken */
    enum rank_state state;
    bool going;           /* Go was passed on */
    bool keeps;           /* its executor can leave an epoch and stay */
    bool fetches;         /* ... with a state that is in the memory of its device */
    bool left;            /* its executor left the epoch before it ended: that was reported */
    bool leaves;          /* its executor is gone, and its state is held for the next one */
    uint64_t let_go_ms;   /* ... until then */
    bool saves;           /* its job has checkpoints */
    uint64_t orphan_ms;   /* so long it trains without a coordinator; 0: for ever */
    bool saving;          /* it was asked to stop with one */
    bool asked;           /* somebody wants it stopped, for the reason that `stopped` will have */
    bool said;            /* the executor itself said why it stopped */
    uint64_t kill_at_ms;  /* UINT64_MAX: it may run; of one that is kept: it is to be stopped */
    uint64_t assigned_in; /* term of its assignment */
    uint64_t sent_in;     /* term in which the newest message of it was sent */
    uint64_t refused_in;  /* ... and in which one was refused as stale; 0: none */
    uint64_t step;        /* the newest finished one that was heard of */

    enum delivery ready;
    Gimbal__ReadyRequest *said_ready; /* by the executor; NULL before */

    uint64_t pause, resumed; /* numbers that were passed on to the executor */
    enum delivery paused;
    bool paused_newer; /* than what was sent: to be sent as well */
    uint64_t paused_number, paused_step;

    enum delivery staged;
    Gimbal__StagedRequest *said_staged; /* by the executor, the newest; NULL before */

    enum delivery stopped;
    Gimbal__StoppedRequest__Cause cause;
    char *reason;
};

/* The node's name is copied; executors fit on devices 0 to device_count - 1; seed is any random
 * number. */
struct supervisor *supervisor_create(const char *node, uint32_t device_count, uint64_t seed);
void supervisor_destroy(struct supervisor *supervisor);

/* Say Hello for the first time. */
void supervisor_start(struct supervisor *supervisor, struct supervisor_actions *actions);
/* Do what it is time for. */
void supervisor_expire(struct supervisor *supervisor, uint64_t now_ms,
                       struct supervisor_actions *actions);
/* When supervisor_expire next has something to do; UINT64_MAX for never. */
uint64_t supervisor_next_ms(const struct supervisor *supervisor);
/* Stop all executors, report them, and quit with 0. While the coordinator is there, jobs that have
 * checkpoints save first: so all of their ranks stop, here and elsewhere. */
void supervisor_terminate(struct supervisor *supervisor, uint64_t now_ms,
                          struct supervisor_actions *actions);

/* How the calls went; text is the sentence unless RPC_OK. */
void supervisor_hello_answered(struct supervisor *supervisor, enum rpc_status status,
                               const char *text, uint64_t term, uint64_t now_ms,
                               struct supervisor_actions *actions);
void supervisor_report_answered(struct supervisor *supervisor, enum rpc_status status,
                                const char *text, uint32_t heartbeat_ms, uint64_t now_ms,
                                struct supervisor_actions *actions);
void supervisor_heartbeat_answered(struct supervisor *supervisor, enum rpc_status status,
                                   const char *text, uint64_t revision, uint64_t now_ms,
                                   struct supervisor_actions *actions);
void supervisor_ready_answered(struct supervisor *supervisor, uint64_t rank, enum rpc_status status,
                               const char *text, uint64_t now_ms,
                               struct supervisor_actions *actions);
void supervisor_paused_answered(struct supervisor *supervisor, uint64_t rank,
                                enum rpc_status status, const char *text, uint64_t now_ms,
                                struct supervisor_actions *actions);
void supervisor_staged_answered(struct supervisor *supervisor, uint64_t rank,
                                enum rpc_status status, const char *text, uint64_t now_ms,
                                struct supervisor_actions *actions);
void supervisor_stopped_answered(struct supervisor *supervisor, uint64_t rank,
                                 enum rpc_status status, const char *text, uint64_t now_ms,
                                 struct supervisor_actions *actions);
/* Something else that an executor asked for (Rendezvous), in that term, was refused. */
void supervisor_rank_failed(struct supervisor *supervisor, uint64_t rank, uint64_t term,
                            enum rpc_status status, const char *text, uint64_t now_ms,
                            struct supervisor_actions *actions);

/* The watch rests and says why. */
void supervisor_watch_broken(struct supervisor *supervisor, enum rpc_status status,
                             const char *text, uint64_t now_ms, struct supervisor_actions *actions);
/* A record of the assignments, in order; the supervisor takes it. */
void supervisor_record(struct supervisor *supervisor, uint64_t revision,
                       Gimbal__WorkerRecord *record, uint64_t now_ms,
                       struct supervisor_actions *actions);

/* From executors: ready for the first step (the supervisor takes what it says), having finished a
 * step, waiting behind one. */
void supervisor_executor_ready(struct supervisor *supervisor, uint64_t rank,
                               Gimbal__ReadyRequest *ready, struct supervisor_actions *actions);
void supervisor_executor_stepped(struct supervisor *supervisor, uint64_t rank, uint64_t step);
void supervisor_executor_paused(struct supervisor *supervisor, uint64_t rank, uint64_t number,
                                uint64_t step, struct supervisor_actions *actions);
/* It has a checkpoint (the supervisor takes what it says), and waits until that is answered; it
 * tells of no other before. */
void supervisor_executor_staged(struct supervisor *supervisor, uint64_t rank,
                                Gimbal__StagedRequest *staged, struct supervisor_actions *actions);
/* It has left its epoch, asked or not, and why; it waits for another one. */
void supervisor_executor_kept(struct supervisor *supervisor, uint64_t rank,
                              Gimbal__StoppedRequest__Cause cause, const char *reason,
                              uint64_t step, uint64_t now_ms, struct supervisor_actions *actions);
/* It says why it stops; it should be gone soon. */
void supervisor_executor_stopping(struct supervisor *supervisor, uint64_t rank,
                                  Gimbal__StoppedRequest__Cause cause, const char *reason,
                                  uint64_t step, uint64_t now_ms);
/* It breaks the protocol: stop it. */
void supervisor_executor_faulty(struct supervisor *supervisor, uint64_t rank, const char *reason,
                                uint64_t now_ms, struct supervisor_actions *actions);
/* How its process ended, or that it could not be started. */
struct executor_end {
    const char *how;        /* as a sentence's end: "was killed by signal 9" */
    const char *last_lines; /* that it printed, or "" */
    bool struck;            /* by a signal that was not ours, nor one that asks it to end */
    bool for_memory;        /* by the kernel */
};
void supervisor_executor_gone(struct supervisor *supervisor, uint64_t rank,
                              const struct executor_end *end, uint64_t now_ms,
                              struct supervisor_actions *actions);

/* What it does and how its link is, in one sentence for a person. Returns out. */
char *supervisor_describe(const struct supervisor *supervisor, char *out, size_t size);

/* The assignment of a rank that is to be started; yours, for message_free. */
Gimbal__Assignment *supervisor_take_assignment(struct supervisor *supervisor, uint64_t rank);

/* NULL when it is not known (any more); lent until the next call that is not const. */
const struct rank *supervisor_rank(const struct supervisor *supervisor, uint64_t id);
/* Ranks by number, the ended ones too. */
size_t supervisor_rank_count(const struct supervisor *supervisor);
const struct rank *supervisor_rank_at(const struct supervisor *supervisor, size_t index);
bool rank_has_executor(const struct rank *rank);

#endif
