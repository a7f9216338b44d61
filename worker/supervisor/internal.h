/* internal.h - inside the supervisor: its state, and what its files ask of each other. */
#ifndef WORKER_SUPERVISOR_INTERNAL_H
#define WORKER_SUPERVISOR_INTERNAL_H

#include "worker/supervisor/supervisor.h"

enum link_state {
    LINK_IDLE,    /* not started yet: nothing is ever due */
    LINK_WAITING, /* until link.due_ms, then Hello */
    LINK_HELLO,   /* said, not answered */
    LINK_REPORT,
    LINK_UP, /* registered; a heartbeat at link.due_ms, or under way */
};

struct link {
    enum link_state state;
    uint64_t due_ms;
    unsigned attempt;       /* failures since the last heartbeat that was answered */
    uint64_t draws;         /* random numbers used */
    uint64_t term;          /* 0: none yet */
    uint64_t reached_ms;    /* when the coordinator last answered */
    uint64_t registered_in; /* the term of the newest registration; 0: none */
    uint32_t heartbeat_ms;
    bool heartbeat_sent;
    uint64_t heartbeat_term; /* in which it was sent */
    uint64_t refused_in;     /* term in which the report was refused as stale; 0: none */
    bool watching;           /* a watch runs */
    uint64_t watch_term;     /* of the newest watch; 0: there was none */
    uint64_t revision;       /* newest record taken, of watch_term */
    uint64_t lagged_from; /* revision at the last heartbeat, if there was a newer one; else MAX */
    char complaint[256];  /* what was last logged about the coordinator */
};

struct supervisor {
    char *node;
    uint32_t device_count;
    uint64_t seed;
    struct link link;
    struct rank *ranks;
    size_t rank_count, rank_capacity;
    uint64_t next_id;
    bool leaving; /* no new executors; quits when all are gone and reported */
    bool quit;    /* said */
    int status;
    uint64_t farewell_ms; /* quits then even if not all is reported; UINT64_MAX: executors live */
};

/* Append an action; the result is lent, to be filled in. */
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
/* A call failed for a reason that has to do with the coordinator: register again, after a pause. */
void link_lose(struct supervisor *supervisor, enum rpc_status status, const char *text,
               uint64_t now_ms, struct supervisor_actions *actions);
/* The coordinator is away, busy or another; nothing is wrong with the call. */
bool link_will_pass(enum rpc_status status);

/* ranks.c */
struct rank *ranks_find(struct supervisor *supervisor, uint64_t id);
bool ranks_all_gone(const struct supervisor *supervisor);
/* The executor's own end, which nobody asked for. */
bool cause_is_fault(Gimbal__StoppedRequest__Cause cause);
void rank_set_cause(struct rank *rank, Gimbal__StoppedRequest__Cause cause, const char *reason);
/* It has no executor any more; the cause is set. */
void rank_end(struct rank *rank, struct supervisor_actions *actions);
/* The same, but its executor stays. */
void rank_keep(struct rank *rank, uint64_t now_ms, struct supervisor_actions *actions);
/* Its executor is gone, but not its state; then that goes, too. */
void rank_leave_state(struct rank *rank, uint64_t now_ms);
void rank_let_go(struct rank *rank);
void rank_finish(struct rank *rank);

/* stops.c */
/* Stop an executor, and give up what waits; harmless for one that is stopping or has ended. One
 * that saves first is not waited for any longer. */
void rank_stop(struct rank *rank, Gimbal__StoppedRequest__Cause cause, const char *reason,
               uint64_t now_ms, struct supervisor_actions *actions);
/* The same, but it saves first, if it can: one that trains. */
void rank_stop_saving(struct rank *rank, Gimbal__StoppedRequest__Cause cause, const char *reason,
                      uint64_t now_ms, struct supervisor_actions *actions);
/* All but those that save first. */
void ranks_stop_all(struct supervisor *supervisor, Gimbal__StoppedRequest__Cause cause,
                    const char *reason, uint64_t now_ms, struct supervisor_actions *actions);
/* End what may not even hear that it is asked to. */
void rank_kill(struct rank *rank, Gimbal__StoppedRequest__Cause cause, const char *reason,
               uint64_t now_ms, struct supervisor_actions *actions);
/* Have it leave its epoch, behind a step that is saved if it can be, or at once; one that saves is
 * not waited for any longer when it is asked again. An executor that cannot stay stops. */
void rank_leave(struct rank *rank, const char *reason, bool save, uint64_t now_ms,
                struct supervisor_actions *actions);
/* All of them are of epochs that are over. */
void ranks_lose_epoch(struct supervisor *supervisor, const char *reason, uint64_t now_ms,
                      struct supervisor_actions *actions);
/* Kill those that did not stop or leave in time, and let go what was kept for long enough. */
void ranks_expire(struct supervisor *supervisor, uint64_t now_ms,
                  struct supervisor_actions *actions);
/* When ranks_expire next has something to do; UINT64_MAX for never. */
uint64_t ranks_next_ms(const struct supervisor *supervisor);

/* assign.c */
/* Takes the assignment; lent until the next one comes. */
struct rank *ranks_add(struct supervisor *supervisor, Gimbal__Assignment *assignment);
/* The same, and start it or say why not. */
void ranks_assign(struct supervisor *supervisor, Gimbal__Assignment *assignment, uint64_t now_ms,
                  struct supervisor_actions *actions);
void ranks_go(struct supervisor *supervisor, const Gimbal__Go *message,
              struct supervisor_actions *actions);
/* Start those whose device is free now. */
void ranks_start_waiting(struct supervisor *supervisor, struct supervisor_actions *actions);

/* orphans.c: stop those that are without a coordinator for too long; there is one again. */
void orphans_expire(struct supervisor *supervisor, uint64_t now_ms,
                    struct supervisor_actions *actions);
void orphans_found(struct supervisor *supervisor, uint64_t now_ms);
uint64_t orphans_next_ms(const struct supervisor *supervisor);

/* pauses.c */
void ranks_pause(struct supervisor *supervisor, const Gimbal__PauseJob *message,
                 struct supervisor_actions *actions);
void ranks_resume(struct supervisor *supervisor, const Gimbal__ResumeJob *message,
                  struct supervisor_actions *actions);

/* deliver.c: while registered, send what is due. */
void ranks_deliver(struct supervisor *supervisor, struct supervisor_actions *actions);
/* A new term has begun: what an older one took of ended ranks is its own. */
void ranks_forget_taken(struct supervisor *supervisor);
/* Messages that were under way will not be answered. */
void ranks_unsend(struct supervisor *supervisor);
/* Whether every Stopped has been taken. */
bool ranks_all_reported(const struct supervisor *supervisor);

/* supervisor.c: leave once all executors are gone, with this status. */
void supervisor_leave(struct supervisor *supervisor, int status, const char *reason,
                      uint64_t now_ms, struct supervisor_actions *actions);
/* Quit if it is time to. */
void supervisor_settle(struct supervisor *supervisor, uint64_t now_ms,
                       struct supervisor_actions *actions);

#endif
