/* supervisor.h - decides what a worker does about its coordinator and its executors.
 *
 * This is a pure state machine: events and a time go in, actions come out, and the caller carries
 * out the actions in order. Times are milliseconds of any monotonic clock; none is read here. Not
 * thread-safe.
 *
 * It does two things at once. The *link*: Hello, a hardware report, then heartbeats. If any of
 * these fails, all of them are repeated after a jittered pause, while executors go on. The *ranks*:
 * each assignment starts an executor, or is given to the executor on its device that has kept the
 * job's state from an earlier epoch. A rank ends in exactly one Stopped report, repeated until
 * the coordinator has accepted it. The state that an executor leaves when it dies unasked is held
 * for the next executor of its job on that device. Nor is a state let go of before the coordinator
 * knows that its rank has stopped: also at the end of a job, which is the coordinator's to say.
 * Ranks that ended are remembered for the rest of the term, so that a repeated assignment is
 * answered with the same report and not started again. */
#ifndef WORKER_SUPERVISOR_SUPERVISOR_H
#define WORKER_SUPERVISOR_SUPERVISOR_H

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/rpc/protocol.h"
#include "proto/worker.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An executor that was asked to stop is killed after this long. */
#define SUPERVISOR_PATIENCE_MS 2000
/* Likewise for one that leaves its epoch with its state in a device's memory, from which it has to
 * fetch it (some tens of GB): what is not fetched is lost with the process. */
#define SUPERVISOR_FETCH_MS 20000
/* An executor that keeps its job's state is stopped if it gets no assignment for this long after
 * the coordinator has heard that it left its epoch. */
#define SUPERVISOR_KEEP_MS 600000
/* An executor that was asked to save before it stops has this long for all of it. */
#define SUPERVISOR_SAVING_MS 45000
/* How long a worker that stops waits for its last reports to be accepted. */
#define SUPERVISOR_FAREWELL_MS 2000
/* Ended ranks that are remembered. */
#define SUPERVISOR_ENDED_MAX 64

struct supervisor;

enum supervisor_action_kind {
    SUPERVISOR_HELLO,     /* call Hello; answer: supervisor_hello_answered */
    SUPERVISOR_REPORT,    /* call ReportHardware; answer: supervisor_report_answered */
    SUPERVISOR_HEARTBEAT, /* call Heartbeat; answer: supervisor_heartbeat_answered */
    SUPERVISOR_WATCH,     /* follow the assignments after `revision`, in place of any older watch */
    SUPERVISOR_RECONNECT, /* create a new client: this instance counts as lost */
    /* Start rank's executor with its assignment, and the state that `from` has left. */
    SUPERVISOR_START,
    SUPERVISOR_ADOPT,   /* give rank's assignment to the executor of `from` */
    SUPERVISOR_QUIESCE, /* tell rank's executor to leave its epoch and stay */
    SUPERVISOR_GO,      /* tell rank's executor to go */
    SUPERVISOR_PAUSE,   /* tell it to pause; the number is rank->pause */
    SUPERVISOR_RESUME,  /* tell it that pauses up to rank->resumed are over */
    SUPERVISOR_SAVE,    /* tell it to stop after a step, with a checkpoint */
    SUPERVISOR_SIGNAL,  /* send `signal` to rank's executor */
    SUPERVISOR_DELIVER, /* call what `message` names for rank; answer: supervisor_rank_answered */
    SUPERVISOR_LOG,     /* log `text` at `level` */
    SUPERVISOR_DIE,     /* kill this worker's process with SIGKILL: a drill */
    /* Drills: for `for_ms`, hold what passes between here and the coordinator, by `delay_ms` (0:
     * all of it until then); let nothing more fit on this node's disks. */
    SUPERVISOR_HINDER,
    SUPERVISOR_FILL_DISK,
    SUPERVISOR_QUIT, /* exit with `status`; no executor is left */
};

/* What is told of a rank, in the order in which it is sent; the coordinator has to accept each. */
enum rank_message {
    MESSAGE_READY,   /* for its first step */
    MESSAGE_PAUSED,  /* in its newest pause */
    MESSAGE_STAGED,  /* it has a checkpoint, also when its executor is gone by now */
    MESSAGE_STOPPED, /* the last that is told */
    MESSAGES,
};

/* Fields that a kind does not mention are unset. */
struct supervisor_action {
    enum supervisor_action_kind kind;
    enum rank_message message;
    uint64_t rank; /* the id in struct rank */
    uint64_t from; /* id of another rank; 0: none */
    uint64_t revision;
    uint32_t for_ms, delay_ms;
    int signal;
    int status;
    enum log_level level;
    char text[512];
};

/* A list of actions; zero it before use. supervisor_actions_clear() empties it and keeps its
 * memory, supervisor_actions_finish() frees that. */
struct supervisor_actions {
    struct supervisor_action *items;
    size_t count, capacity;
};
void supervisor_actions_clear(struct supervisor_actions *actions);
void supervisor_actions_finish(struct supervisor_actions *actions);

enum rank_state {
    RANK_WAITING,  /* for its device, which another executor is about to leave */
    RANK_RUNNING,  /* its executor was started */
    RANK_LEAVING,  /* ... and asked to leave its epoch */
    RANK_STOPPING, /* ... and asked to stop */
    RANK_KEPT,     /* it has left its epoch, and its executor keeps the state */
    RANK_ENDED,    /* it has no executor (any more) */
};

/* How far a message is that the coordinator has to accept. */
enum delivery { DELIVERY_NONE, DELIVERY_DUE, DELIVERY_SENT, DELIVERY_DONE };

/* One rank of one epoch of a job. Lent by supervisor_rank, read-only for callers. */
struct rank {
    uint64_t id;
    char *job;
    uint64_t epoch;
    uint32_t rank;
    uint32_t device_index;
    Gimbal__Assignment *assignment; /* NULL once taken */
    enum rank_state state;
    bool going;           /* Go was passed on */
    bool keeps;           /* its executor can leave an epoch and stay */
    bool fetches;         /* ... with a state that lies in its device's memory */
    bool has_left_epoch;  /* its executor did, and that was reported, before it ended */
    bool has_left_state;  /* its executor is gone, but its state is held for the next one */
    uint64_t let_go_ms;   /* ... until this time */
    bool saves;           /* its job has checkpoints */
    uint64_t orphan_ms;   /* how long it trains without a coordinator; 0: forever */
    bool saving;          /* it was asked to save before it stops or leaves */
    bool asked;           /* somebody asked it to stop, for `reason` */
    bool said;            /* the executor itself said why it stops */
    uint64_t kill_at_ms;  /* UINT64_MAX: never; for a kept rank: when to stop it */
    uint64_t assigned_in; /* term of its assignment */
    uint64_t sent_in;     /* term in which its newest message was sent */
    uint64_t refused_in;  /* term in which a message was refused as stale; 0: none */
    uint64_t step;        /* the newest finished step that was reported */

    enum delivery delivery[MESSAGES];
    Gimbal__ReadyRequest *said_ready; /* from the executor; NULL before */
    uint64_t pause, resumed;          /* newest numbers passed on to the executor */
    uint64_t paused_number, paused_step;
    bool paused_newer;                   /* a newer pause than the one sent: send that too */
    Gimbal__StagedRequest *said_staged;  /* newest one from the executor; NULL before */
    Gimbal__StoppedRequest__Cause cause; /* with `reason`, of Stopped */
    char *reason;
    bool finished;         /* with DONE: nothing of the job is left to do, and */
    Gimbal__LastStep last; /* what came of it */
};

/* Create a supervisor for a node (its name is copied) with devices 0 to device_count - 1. `seed` is
 * any random number, for jitter. */
struct supervisor *supervisor_create(const char *node, uint32_t device_count, uint64_t seed);
/* Accepts NULL. */
void supervisor_destroy(struct supervisor *supervisor);

/* Say Hello for the first time; to be called once. */
void supervisor_start(struct supervisor *supervisor, struct supervisor_actions *actions);
/* Do what is due. */
void supervisor_expire(struct supervisor *supervisor, uint64_t now_ms,
                       struct supervisor_actions *actions);
/* When supervisor_expire next has something to do; UINT64_MAX for never. */
uint64_t supervisor_next_ms(const struct supervisor *supervisor);
/* Stop all executors, report them, and quit with status 0. While the coordinator is reachable, jobs
 * that have checkpoints save first, which stops their ranks on other nodes too. */
void supervisor_terminate(struct supervisor *supervisor, uint64_t now_ms,
                          struct supervisor_actions *actions);

/* Results of calls. `text` explains any status but RPC_OK. */
void supervisor_hello_answered(struct supervisor *supervisor, enum rpc_status status,
                               const char *text, uint64_t term, uint64_t now_ms,
                               struct supervisor_actions *actions);
void supervisor_report_answered(struct supervisor *supervisor, enum rpc_status status,
                                const char *text, uint32_t heartbeat_ms, uint64_t now_ms,
                                struct supervisor_actions *actions);
void supervisor_heartbeat_answered(struct supervisor *supervisor, enum rpc_status status,
                                   const char *text, uint64_t revision, uint64_t now_ms,
                                   struct supervisor_actions *actions);
void supervisor_rank_answered(struct supervisor *supervisor, uint64_t rank,
                              enum rank_message message, enum rpc_status status, const char *text,
                              uint64_t now_ms, struct supervisor_actions *actions);
/* Another request of a rank's executor (Rendezvous), sent in that term, was refused. */
void supervisor_rank_failed(struct supervisor *supervisor, uint64_t rank, uint64_t term,
                            enum rpc_status status, const char *text, uint64_t now_ms,
                            struct supervisor_actions *actions);

/* The watch has ended with this status; it does not restart by itself. */
void supervisor_watch_broken(struct supervisor *supervisor, enum rpc_status status,
                             const char *text, uint64_t now_ms, struct supervisor_actions *actions);
/* A record of the assignments, delivered in order. Takes the record. */
void supervisor_record(struct supervisor *supervisor, uint64_t revision,
                       Gimbal__WorkerRecord *record, uint64_t now_ms,
                       struct supervisor_actions *actions);

/* Events from executors: ready for the first step (takes the message), finished a step, waiting in
 * pause `number` after a step. */
void supervisor_executor_ready(struct supervisor *supervisor, uint64_t rank,
                               Gimbal__ReadyRequest *ready, struct supervisor_actions *actions);
void supervisor_executor_stepped(struct supervisor *supervisor, uint64_t rank, uint64_t step);
void supervisor_executor_paused(struct supervisor *supervisor, uint64_t rank, uint64_t number,
                                uint64_t step, struct supervisor_actions *actions);
/* The executor has a checkpoint (takes the message). It waits until that is answered, and reports
 * no other one before. */
void supervisor_executor_staged(struct supervisor *supervisor, uint64_t rank,
                                Gimbal__StagedRequest *staged, struct supervisor_actions *actions);
/* The executor says why it is out of its epoch, asked to leave it or not: it stops, and should be
 * gone soon, or it keeps its state and waits for another assignment. */
void supervisor_executor_stopped(struct supervisor *supervisor, uint64_t rank,
                                 const Gimbal__StoppedRequest *said, uint64_t now_ms,
                                 struct supervisor_actions *actions);
/* The executor breaks the protocol: stop it. */
void supervisor_executor_faulty(struct supervisor *supervisor, uint64_t rank, const char *reason,
                                uint64_t now_ms, struct supervisor_actions *actions);
/* How an executor's process ended, or why it could not be started. */
struct executor_end {
    const char *how;        /* end of a sentence, such as "was killed by signal 9" */
    const char *last_lines; /* of its output; "" if none */
    bool struck;            /* by a signal that neither came from here nor asks to end */
    bool for_memory;        /* the kernel killed it for memory */
};
void supervisor_executor_gone(struct supervisor *supervisor, uint64_t rank,
                              const struct executor_end *end, uint64_t now_ms,
                              struct supervisor_actions *actions);

/* One sentence on what the supervisor does and how its link is. Returns out. */
char *supervisor_describe(const struct supervisor *supervisor, char *out, size_t size);

/* Take the assignment of a rank that is to be started; the caller frees it with message_free. */
Gimbal__Assignment *supervisor_take_assignment(struct supervisor *supervisor, uint64_t rank);

/* NULL if unknown (any more). Lent until the next call that is not const. */
const struct rank *supervisor_rank(const struct supervisor *supervisor, uint64_t id);
/* All ranks by index, including ended ones. */
size_t supervisor_rank_count(const struct supervisor *supervisor);
const struct rank *supervisor_rank_at(const struct supervisor *supervisor, size_t index);
/* Whether the rank has an executor process. */
bool rank_has_executor(const struct rank *rank);

#endif
