/* internal.h - inside the daemon: what its loop, its calls and its executors share.
 *
 * Whatever happens is told to the supervisor at once, from any callback; what follows is
 * collected in `actions` and carried out at one place only, between two turns of the loop. */
#ifndef WORKER_DAEMON_INTERNAL_H
#define WORKER_DAEMON_INTERNAL_H

#include "common/rpc/client.h"
#include "common/rpc/push.h"
#include "common/rpc/watch.h"
#include "proto/cluster.pb-c.h"
#include "proto/executor.pb-c.h"
#include "worker/daemon/child.h"
#include "worker/daemon/daemon.h"
#include "worker/daemon/fence.h"
#include "worker/daemon/look.h"
#include "worker/daemon/relay.h"
#include "worker/supervisor/supervisor.h"

#include <poll.h>

/* An executor of ours. */
struct process {
    struct daemon *daemon;
    uint64_t rank; /* the supervisor's id */
    struct child child;
    int state_fd;        /* of the file that it keeps its state in; -1: none */
    bool deaf;           /* its channel is closed or broken */
    uint64_t began_ms;   /* when it was given its rank */
    struct look look;    /* the newest */
    uint64_t stopped_ms; /* when it was first seen to be stopped; 0: it is not */
};

struct daemon {
    struct daemon_options options;
    Gimbal__HardwareReport *report;
    char *fence_path;
    struct rpc_fence fence; /* as it is in the file */
    struct rpc_client *client;
    struct rpc_watch *watch;
    struct rpc_push *push;
    struct relay *relay;
    struct rank_call *calls; /* under way, for a rank */
    struct supervisor *supervisor;
    struct supervisor_actions actions;
    struct process **processes;
    size_t process_count, process_capacity;
    struct estate_left *left; /* by executors that are gone */
    size_t left_count, left_capacity;
    bool quit;
    int status;
};

/* calls.c: to the coordinator. Their answers go to the supervisor. */
int calls_open(struct daemon *daemon, struct error *err);
void calls_close(struct daemon *daemon);
void calls_hello(struct daemon *daemon);
void calls_report(struct daemon *daemon);
void calls_heartbeat(struct daemon *daemon);
void calls_watch(struct daemon *daemon, uint64_t revision);
void calls_push(struct daemon *daemon, const Gimbal__TelemetryRecord *record);
/* Once, and no longer than until the deadline. */
void calls_start(struct daemon *daemon, unsigned method, const ProtobufCMessage *request,
                 uint32_t deadline_ms, rpc_done_cb done, void *data);

/* reports.c: how a rank is doing; the same. */
void reports_ready(struct daemon *daemon, uint64_t rank);
void reports_paused(struct daemon *daemon, uint64_t rank);
void reports_staged(struct daemon *daemon, uint64_t rank);
void reports_stopped(struct daemon *daemon, uint64_t rank);
/* Telemetry may have been taken: send what waits for that. */
void reports_release(struct daemon *daemon);
void reports_drop(struct daemon *daemon);

/* orders.c: what executors are told; whoever cannot be talked to any more is said to be faulty. */
void orders_assign(struct process *process, Gimbal__Assignment *assignment);
/* To go, pause, resume, leave its epoch, or save and stop: the action, as its rank is now. */
void orders_give(struct daemon *daemon, uint64_t rank, enum supervisor_action_kind kind);
/* The checkpoint that it told of is listed, with these. */
void orders_listed(struct daemon *daemon, uint64_t rank, uint64_t step, char *const *listed,
                   size_t count);
/* The answer to what an executor asked of the coordinator. */
void orders_answer(void *daemon, uint64_t rank, const Gimbal__ExecutorRendezvous *answer);

/* estates.c: the file that the executor of a rank has left, or a new one; yours. -1: there is none,
 * which was logged. */
int estates_take(struct daemon *daemon, uint64_t from);
/* Takes the file of a rank whose executor is gone. */
void estates_leave(struct daemon *daemon, uint64_t rank, int fd);
/* Let go what no rank leaves any more. */
void estates_sweep(struct daemon *daemon);
void estates_close(struct daemon *daemon);

/* processes.c: executors, by the supervisor's id. NULL: there is none, or no more. */
struct process *processes_find(const struct daemon *daemon, uint64_t rank);
/* `from`: what that rank's has left is for it. */
void processes_start(struct daemon *daemon, uint64_t rank, uint64_t from);
/* The executor of the rank `from` is now that of this one. */
void processes_adopt(struct daemon *daemon, uint64_t rank, uint64_t from);
void processes_signal(struct daemon *daemon, uint64_t rank, int signal);
/* Take what it has sent and printed. */
void process_read(struct process *process);
/* It has ended: tell why, and forget it. */
void process_end(struct process *process);
void processes_kill_all(struct daemon *daemon);

/* positions.c: where it is, if it has been there for long enough to be told; for message_free, or
 * NULL: it moves on. */
Gimbal__RankPosition *processes_position(struct daemon *daemon, uint64_t rank);

/* daemon.c, for the loop. What a daemon waits for: so many descriptors, listed into fds, and a
 * time, UINT64_MAX for none. Then its turn comes, with what poll() said of them. */
size_t daemon_fd_count(const struct daemon *daemon);
void daemon_list_fds(const struct daemon *daemon, struct pollfd *fds);
uint64_t daemon_next_ms(const struct daemon *daemon);
void daemon_turn(struct daemon *daemon, const struct pollfd *fds);
void daemon_terminate(struct daemon *daemon);
/* Wait a little for the last telemetry to be taken. */
void daemon_flush(struct daemon *daemon);

uint64_t daemon_now_ms(void);

#endif
