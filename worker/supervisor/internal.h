/* internal.h - the supervisor's state, and the functions that its files offer each other. */
#ifndef WORKER_SUPERVISOR_INTERNAL_H
#define WORKER_SUPERVISOR_INTERNAL_H

#include "worker/supervisor/supervisor.h"

enum link_state {
    LINK_IDLE,    /* not started: nothing is ever due */
    LINK_WAITING, /* Hello is due at link.due_ms */
    LINK_HELLO,   /* Hello was sent and is not answered */
    /* The hardware report was sent and is not answered. */
    LINK_REPORT,
    LINK_UP, /* registered; a heartbeat is due at link.due_ms, or unanswered */
};

/* The connection to the coordinator. */
struct link {
    enum link_state state;
    uint64_t due_ms;
    unsigned attempt;       /* failed attempts since the last answered heartbeat */
    uint64_t draws;         /* random numbers used so far */
    uint64_t term;          /* of the coordinator; 0: none yet */
    uint64_t reached_ms;    /* time of the coordinator's last answer */
    uint64_t registered_in; /* term of the newest registration; 0: none */
    uint32_t heartbeat_ms;
    bool heartbeat_sent;
    uint64_t heartbeat_term; /* term in which the newest heartbeat was sent */
    uint64_t refused_in;     /* term in which a report was refused as stale; 0: none */
    bool watching;           /* a watch is running */
    uint64_t watch_term;     /* term of the newest watch; 0: none yet */
    uint64_t revision;       /* of the newest record received in watch_term */
    /* The revision here at the last heartbeat, if the coordinator had a newer one; otherwise
     * UINT64_MAX. */
    uint64_t lagged_from;
    char complaint[256]; /* the newest complaint that was logged */
};

struct supervisor {
    char *node;
    uint32_t device_count;
    uint64_t seed;
    struct link link;
    struct rank *ranks;
    size_t rank_count, rank_capacity;
    uint64_t next_id; /* id of the newest rank */
    bool leaving;     /* start no executors; quit when all are gone and reported */
    bool quit;        /* SUPERVISOR_QUIT was said */
    int status;       /* for SUPERVISOR_QUIT */
    /* When to quit even if some ends are not reported; UINT64_MAX while executors live. */
    uint64_t farewell_ms;
};

/* Append an action; the result is lent for the caller to fill in, until the next append. */
struct supervisor_action *act(struct supervisor_actions *actions, enum supervisor_action_kind kind);
void act_on_rank(struct supervisor_actions *actions, enum supervisor_action_kind kind,
                 const struct rank *rank);
void act_log(struct supervisor_actions *actions, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* link.c */
void link_begin(struct supervisor *supervisor, struct supervisor_actions *actions);
void link_expire(struct supervisor *supervisor, uint64_t now_ms,
                 struct supervisor_actions *actions);
uint64_t link_next_ms(const struct supervisor *supervisor);
/* A call failed for a reason that concerns the coordinator: register again after a pause. Does
 * nothing unless the link is up. */
void link_lose(struct supervisor *supervisor, enum rpc_status status, const char *text,
               uint64_t now_ms, struct supervisor_actions *actions);
/* Whether this status is temporary (the coordinator is away, busy or replaced) and not the fault
 * of the call. */
bool link_will_pass(enum rpc_status status);

/* ranks.c */
/* NULL: no such rank. */
struct rank *ranks_find(struct supervisor *supervisor, uint64_t id);
/* Whether every rank has ended. */
bool ranks_all_gone(const struct supervisor *supervisor);
/* Whether this cause is a fault of the executor itself, which nobody asked for. */
bool cause_is_fault(Gimbal__StoppedRequest__Cause cause);
void rank_set_cause(struct rank *rank, Gimbal__StoppedRequest__Cause cause, const char *reason);
/* The rank has no executor any more; its cause must be set. */
void rank_end(struct rank *rank, struct supervisor_actions *actions);
/* The rank has left its epoch, and its executor stays with the state; the cause must be set. */
void rank_keep(struct rank *rank, struct supervisor_actions *actions);
/* The rank's executor is gone but has left its state: hold that for the next executor. rank_let_go
 * drops it. */
void rank_leave_state(struct rank *rank, uint64_t now_ms);
/* The coordinator knows that the rank has stopped: what is kept of it is for a while. */
void rank_heard(struct rank *rank, uint64_t now_ms);
void rank_let_go(struct rank *rank);
/* Free what the rank holds. */
void rank_finish(struct rank *rank);

/* Stop an executor now, give up a rank that waits, or let go what is kept. One that is saving stops
 * without waiting for that. Harmless for a rank that is already stopping or has ended. */
void rank_stop(struct rank *rank, Gimbal__StoppedRequest__Cause cause, const char *reason,
               uint64_t now_ms, struct supervisor_actions *actions);
/* The same, but let the executor save first if it trains and its job has checkpoints. */
void rank_stop_saving(struct rank *rank, Gimbal__StoppedRequest__Cause cause, const char *reason,
                      uint64_t now_ms, struct supervisor_actions *actions);
/* Stop all, except those that are saving first. */
void ranks_stop_all(struct supervisor *supervisor, Gimbal__StoppedRequest__Cause cause,
                    const char *reason, uint64_t now_ms, struct supervisor_actions *actions);
/* Kill an executor that may not even notice that it is asked to stop. */
void rank_kill(struct rank *rank, Gimbal__StoppedRequest__Cause cause, const char *reason,
               uint64_t now_ms, struct supervisor_actions *actions);
/* Have a rank leave its epoch, at once or after a step that is saved if possible; asking again
 * without `save` ends the wait for that. An executor that cannot stay is stopped. */
void rank_leave(struct rank *rank, const char *reason, bool save, uint64_t now_ms,
                struct supervisor_actions *actions);
/* All epochs here are over, because this worker was taken for lost. */
void ranks_lose_epoch(struct supervisor *supervisor, const char *reason, uint64_t now_ms,
                      struct supervisor_actions *actions);
/* Stop ranks that have been without a coordinator for too long, let go what nobody was told of for
 * as long, kill executors that did not stop or
 * leave in time, and let go states that were kept for too long. */
void ranks_expire(struct supervisor *supervisor, uint64_t now_ms,
                  struct supervisor_actions *actions);
/* There is a coordinator again: those that were about to stop without it have some time to save. */
void orphans_found(struct supervisor *supervisor, uint64_t now_ms);
/* When ranks_expire next has something to do; UINT64_MAX for never. */
uint64_t ranks_next_ms(const struct supervisor *supervisor);

/* records.c */
/* Start ranks whose device has become free. */
void ranks_start_waiting(struct supervisor *supervisor, struct supervisor_actions *actions);

/* deliver.c: while the worker is registered, send the messages that are due. */
void ranks_deliver(struct supervisor *supervisor, struct supervisor_actions *actions);
/* A new term has begun: forget ended ranks, whose reports an older term has taken. */
void ranks_forget_taken(struct supervisor *supervisor);
/* Messages under way will not be answered; send them again. */
void ranks_unsend(struct supervisor *supervisor);
/* Whether every Stopped has been accepted. */
bool ranks_all_reported(const struct supervisor *supervisor);

/* supervisor.c: stop everything, and quit with `status` once all executors are gone. */
void supervisor_leave(struct supervisor *supervisor, int status, const char *reason,
                      uint64_t now_ms, struct supervisor_actions *actions);
/* Quit if it is time. */
void supervisor_settle(struct supervisor *supervisor, uint64_t now_ms,
                       struct supervisor_actions *actions);

#endif
