/* internal.h - the daemon's state, shared by its loop, its calls and its executors.
 *
 * Whatever happens is reported to the supervisor at once, from any callback. The actions that
 * follow are collected in `actions` and carried out in one place only, at the end of a daemon's
 * turn in the loop. */
#ifndef WORKER_DAEMON_INTERNAL_H
#define WORKER_DAEMON_INTERNAL_H

#include "common/rpc/client.h"
#include "common/rpc/streams.h"
#include "proto/cluster.pb-c.h"
#include "proto/executor.pb-c.h"
#include "worker/daemon/daemon.h"
#include "worker/daemon/relay.h"
#include "worker/node/child.h"
#include "worker/node/state_folder.h"
#include "worker/supervisor/supervisor.h"

#include <poll.h>

/* An executor that runs. */
struct process {
    struct daemon *daemon;
    uint64_t rank; /* the supervisor's id */
    struct child child;
    int state_fd;           /* of the file with its state; -1: none */
    bool deaf;              /* its channel is closed or broken */
    uint64_t began_ms;      /* when it was given its current rank */
    struct child_look look; /* the newest look at the process */
    uint64_t stopped_ms;    /* when it was first seen stopped; 0: it is not */
};

/* Single-threaded: used by the loop's thread only. */
struct daemon {
    struct daemon_options options;
    Gimbal__HardwareReport *report;
    char *fence_path;
    struct rpc_fence fence; /* as stored in the file */
    struct rpc_client *client;
    struct rpc_hindrance hindrance; /* of a drill; also for clients to come */
    struct rpc_watch *watch;
    struct rpc_push *push;
    struct relay *relay;
    struct rank_call *calls; /* calls in progress about a rank */
    struct supervisor *supervisor;
    struct supervisor_actions actions;
    struct process **processes;
    size_t process_count, process_capacity;
    struct state_file *state_files; /* files of executors that are gone */
    size_t state_file_count, state_file_capacity;
    bool quit;
    int status;
};

/* calls.c: calls to the coordinator; answers go to the supervisor. */
int calls_open(struct daemon *daemon, struct error *err);
/* As another instance: what was called and is not answered is forgotten, telemetry is kept. */
int calls_reopen(struct daemon *daemon, struct error *err);
void calls_close(struct daemon *daemon);
void calls_hello(struct daemon *daemon);
void calls_report(struct daemon *daemon);
void calls_heartbeat(struct daemon *daemon);
void calls_watch(struct daemon *daemon, uint64_t revision);
void calls_push(struct daemon *daemon, const Gimbal__TelemetryRecord *record);
/* Tell this of a rank. */
void calls_deliver(struct daemon *daemon, uint64_t rank, enum rank_message message);
/* Send the reports that were waiting for telemetry to be delivered, if it has been. */
void calls_release(struct daemon *daemon);

/* processes.c: the executors, by the supervisor's rank id. One to which nothing can be sent is
 * reported as faulty. */
/* Start the executor of a rank, with the state that `from` has left (0: none). */
void processes_start(struct daemon *daemon, uint64_t rank, uint64_t from);
/* Give the executor of rank `from` to this rank. */
void processes_adopt(struct daemon *daemon, uint64_t rank, uint64_t from);
/* Send the command for this action (go, pause, resume, leave the epoch, or save and stop) with the
 * data of its rank. */
void processes_order(struct daemon *daemon, uint64_t rank, enum supervisor_action_kind kind);
/* Tell all executors that the disk is full, if a drill says so; one that is started later is told
 * by itself. */
void processes_fill_disk(struct daemon *daemon);
/* Tell an executor that its checkpoint of this step is listed, together with these. */
void processes_tell_listed(struct daemon *daemon, uint64_t rank, uint64_t step, char *const *listed,
                           size_t count);
/* Pass the coordinator's answer on to the executor that asked; relay_hooks.answer. */
void processes_answer(void *daemon, uint64_t rank, const Gimbal__ExecutorRendezvous *answer);
void processes_signal(struct daemon *daemon, uint64_t rank, int signal);
/* Where a rank is stuck. NULL if it moves on, or has been there too briefly; the caller frees the
 * result with message_free. */
Gimbal__RankPosition *processes_position(struct daemon *daemon, uint64_t rank);
/* Close state files that are no longer held for a rank. */
void processes_sweep_states(struct daemon *daemon);
/* Handle what it has sent and printed. */
void process_read(struct process *process);
/* The process has ended: report why, and free it. */
void process_end(struct process *process);
/* Kill all, and close their state files. */
void processes_close(struct daemon *daemon);

/* daemon.c: what a loop asks of a daemon, daemons_run() or that of the simulation. A daemon waits
 * for its descriptors, which it lists into fds, and for a time (UINT64_MAX: none). Then daemon_turn
 * handles what poll() found. */
size_t daemon_fd_count(const struct daemon *daemon);
void daemon_list_fds(const struct daemon *daemon, struct pollfd *fds);
uint64_t daemon_next_ms(const struct daemon *daemon);
void daemon_turn(struct daemon *daemon, const struct pollfd *fds);
void daemon_terminate(struct daemon *daemon);
/* Wait, for a second at most, until the last telemetry has been delivered. */
void daemon_flush(struct daemon *daemon);

/* Milliseconds of the monotonic clock that all of this uses. */
uint64_t daemon_now_ms(void);

#endif
