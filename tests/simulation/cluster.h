/* cluster.h - inside the simulated cluster: its coordinator, nodes, users, executors. */
#ifndef TESTS_SIMULATION_CLUSTER_H
#define TESTS_SIMULATION_CLUSTER_H

#include "coordinator/service/service.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/world.h"
#include "worker/daemon/internal.h"

struct coordinator {
    struct actor actor; /* first */
    struct disk *disk;
    struct store *store;
    struct service *service; /* NULL: it does not run */
    uint64_t term, calendar_ms;
    uint64_t polled_ms;          /* its own time when it began to handle what had come */
    uint64_t polled_before_ms;   /* and the time before that */
    unsigned polled_devices[2];  /* that could be free one day, then, by kind */
    uint64_t slow_until_ms;      /* when its last turn ended that took any time */
    uint64_t away_ms, outage_ms; /* since when it does not run; how long it was away last */
    struct event *start;
    bool impostor;
};

/* A node and the worker on it; it may be killed and started again. */
struct sim_node {
    struct actor actor; /* first */
    char name[HARDWARE_NAME_SIZE];
    struct hardware_report *report;
    struct daemon *daemon;
    bool up, slow, over;    /* over: it is not started again */
    struct rpc_fence fence; /* on its disk */
    uint64_t seen_term;
    uint64_t trouble_ms; /* when something that may lose it was last done to it; MAX: is */
    struct event *start, *heal;
};

struct cluster {
    struct coordinator coordinator, impostor;
    struct sim_node *nodes;
    size_t node_count;
    struct user *users;
    size_t user_count;
    struct disk *backup; /* from before some start; NULL: none */
    uint64_t storm_ms;   /* the bucket that hellos are counted in, while there is a storm */
    unsigned storm_hellos;
};

extern struct cluster *cluster;

/* scenario.c: an epoch of some job has become durable, and nobody else has heard of it. */
void scenario_job_starts(void);

/* coordinator.c */
void coordinator_init(struct coordinator *coordinator, bool impostor);
void coordinator_start(struct coordinator *coordinator);
void coordinator_finish(struct coordinator *coordinator);
void impostor_maybe(void);

/* nodes.c */
void node_init(struct sim_node *node, size_t index);
void node_start(struct sim_node *node);
/* The worker is killed soon; its connections close, or, when the machine goes, they do not. */
void node_kill(struct sim_node *node, bool machine);
/* The worker is killed, now. */
void node_die(struct sim_node *node);
void node_terminate(struct sim_node *node);
void node_cut(struct sim_node *node, uint64_t time_ms);
/* One of its connections is lost. */
void node_break(struct sim_node *node);
/* Nodes lose connections while the coordinator is busy for so long from now on. */
void nodes_give_up(uint64_t busy_ms);
void node_finish(struct sim_node *node);
struct sim_node *node_named(const char *name);
/* The highest term that it knows. */
uint64_t node_term(const struct sim_node *node);
/* Whether it still is the life that drew this number. */
bool node_lives_as(const struct sim_node *node, uint64_t instance);
/* Whether a rank there may have been lost since that time. */
bool node_in_trouble(const struct sim_node *node, uint64_t since_ms);

/* executors.c */
/* The executors of an epoch that are there, in no order. */
struct crew {
    char job[32];
    uint64_t epoch;
    struct executor **members;
    size_t count, capacity;
    bool spoiled; /* none of its steps is finite */
};
struct executor;
/* Into the crew of its epoch, and out of the one that it is in, if any. */
void crew_join(struct executor *executor);
void crew_leave(struct executor *executor);
/* All have left. */
void crews_close(void);

typedef void (*executor_cb)(struct executor *executor);
struct executor {
    int id;
    struct sim_node *node;
    char job[32];
    uint64_t epoch, hash;
    uint32_t rank, rank_count, trainers, device;
    uint64_t step, steps, step_ms;
    uint64_t step_epoch;     /* that has finished this step; 0: none */
    struct crew *crew;       /* of its epoch */
    uint64_t pause, resumed; /* the newest pause that it was told of, and that is over */
    uint64_t pauses;         /* that it has been through */
    bool ready, going, arrived, paused, told, ended,
        killed;                /* told: it has said why it stops, or was asked to */
    bool keeps, leaving, kept; /* it can leave an epoch and stay; is asked to; has */
    uint64_t kept_ms;          /* since when */
    bool saving;               /* and saves before it leaves, or stops */
    bool starved;              /* the kernel killed it for memory */
    int status, signal;
    ProtobufCMessage **events; /* for the worker, oldest first */
    size_t event_count, event_capacity;
    uint64_t questions;
    struct event *next;
    executor_cb then;        /* what it does next */
    uint64_t ledger;         /* of its state */
    int state_fd;            /* what outlives it; -1: nothing */
    uint64_t share, reduced; /* of the step at hand: its own, and of all */
    bool wish;               /* of some rank: to pause behind the step */
    uint64_t phase_ms;       /* when it entered the one that it is in */
    int awaits;              /* whom its trail says it waits for, once it has arrived */
    struct trail *trail;
    bool stopped, frozen, terminated; /* its process is; it was about to do something; was asked */
    ProtobufCMessage **held;          /* what it was told since */
    size_t held_count, held_capacity;
    bool stuck, muted; /* it never ends what it is at; nothing that it sends arrives */
};
/* Its process ends, unless it has. */
void executor_end(struct executor *executor, int status, int signal);
/* It ended before its time: the others of its epoch will notice. */
void executor_fail_peers(const struct executor *lost);
void executor_take(struct executor *executor, const Gimbal__ExecutorCommand *command);
void executor_terminate(struct executor *executor);

void executor_say(struct executor *executor, const Gimbal__ExecutorEvent *event);
void executor_say_stopped(struct executor *executor, Gimbal__StoppedRequest__Cause cause,
                          const char *reason);
#define HELD_OUT_TARGETS 64
/* It has done all: it says so, and stays if it can. */
void executor_finish(struct executor *executor);
/* It faults, with or without a word. */
void executor_break_down(struct executor *executor);

/* It does this in so long, in place of what it was about to do; or nothing. */
void executor_after(struct executor *executor, uint64_t delay_ms, executor_cb callback);
void executor_rest(struct executor *executor);
bool executor_is_busy(const struct executor *executor);
/* Its process is stopped, and goes on. */
void executor_stop(struct executor *executor);
void executor_continue(struct executor *executor);
void executor_hold(struct executor *executor, const Gimbal__ExecutorCommand *command);
void executor_drop_held(struct executor *executor);

/* training.c: what training has done to a state, as a number: every sample of every step, once and
 * in order.
 *
 * Each rank puts the samples of its cut into a share; the shares of a step are added, and the sum
 * goes into the state's ledger together with the step. So a state has the right ledger for its step
 * only if no sample was lost or taken twice and no step was left out or done twice, over all plans
 * and epochs that it went through. */
#define LEDGER_START 1

/* Of rank `rank` of `ranks`, for the step that is counted from 0. */
uint64_t ledger_share(uint64_t step, uint32_t rank, uint32_t ranks);
/* With the sum of all shares of that step. */
uint64_t ledger_add(uint64_t ledger, uint64_t step, uint64_t shares);
/* That a state has to have after so many steps. */
uint64_t ledger_right(uint64_t steps);

/* It begins with what one before it has left on its device; its state is this now. */
void executor_inherit(struct executor *executor);
void executor_persist(const struct executor *executor);

/* The next step, or what follows on the last; and whether all have come to the reduction of theirs.
 */
void training_begin(struct executor *executor);
void training_meet(const struct crew *crew);

/* children.c */
/* NULL when it is gone. */
struct executor *executor_numbered(int id);
/* By its number; NULL when it has ended. */
struct executor *executor_at(size_t index);
/* Whether this descriptor, of one of them, is readable. */
bool executor_says(int fd);

/* users.c */
struct user *users_create(size_t count);
void users_destroy(struct user *users, size_t count);
/* A job on at most so many devices that comes to no end of its own. */
void users_submit_endless(struct user *users, unsigned devices);
/* One of them cancels a job. */
void users_cancel(struct user *users);
/* One of them does something. */
void users_act(struct user *users, size_t count);
/* All nodes may be used again, and all jobs run. */
void users_free_all(struct user *users);
/* All have their answers, and have seen every event. */
bool users_settled(const struct user *users, size_t count);
/* What they were told is still true. */
void users_check(const struct user *users, size_t count);

#endif
