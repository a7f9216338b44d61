/* child.h - one gimbal-executor process: starts it through the shim, talks to it, watches and reaps
 * it.
 *
 * A child dies with the thread that started it, which therefore has to be the program's main
 * thread. */
#ifndef WORKER_NODE_CHILD_H
#define WORKER_NODE_CHILD_H

#include "common/base/error.h"
#include "common/message/channel.h"
#include "worker/hardware/cgroup.h"
#include "worker/node/lines.h"
#include "worker/trail/trail.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The numbers of the descriptors that it is started with. */
enum {
    INHERITED_CHANNEL = 3,
    INHERITED_TRAIL,
    INHERITED_STATE, /* the file with its state, if it has one */
};

struct child_options {
    const char *shim, *program;
    const char *const *arguments; /* after --channel FD; NULL-terminated */
    const char *cpuset;           /* its cores, such as "0-3" */
    /* File for its state (INHERITED_STATE in the child), lent; a descriptor above 4, or -1. */
    int state_fd;
};

struct child {
    pid_t pid;
    int pid_fd;    /* pidfd, readable when the process has ended */
    int output_fd; /* non-blocking pipe with its output; -1 once that has ended */
    struct channel channel;
    struct lines lines;
    struct trail *trail;       /* how far it is, written by the child */
    struct cgroup_kills kills; /* the kernel's count when it was started, or given its epoch */
    bool killed;               /* SIGKILL was sent from here */
};

/* What the kernel says about it, seen from outside. */
struct child_look {
    uint64_t at_ms;   /* time of the look; 0: none yet */
    uint64_t busy_ms; /* processor time that the process had used by then */
    bool stopped;     /* by a signal or a debugger */
    /* A thread of it is runnable, but the process has used a processor for less than half the time
     * since the last look: that it makes no progress is not its own fault. */
    bool starved;
};

struct child_end {
    char how[160]; /* end of a sentence, such as "was killed by signal 9 (Killed)" */
    bool struck;   /* by a signal that neither came from here nor asks to end */
    /* It died of a SIGKILL that was not sent from here, and since its epoch began the kernel has
     * killed somebody in this cgroup for memory. As far as anyone can know, that was this
     * process. */
    bool for_memory;
};

/* Start a child. -errno if it cannot be spawned; *out is then untouched. */
int child_start(const struct child_options *options, struct child *out, struct error *err);
/* Send it a command. -EPIPE: it has closed its channel; -EAGAIN: it has not read for a second. */
int child_send(struct child *child, const ProtobufCMessage *command, struct error *err);
/* Send a signal to its whole process group. */
void child_signal(struct child *child, int signal);
/* It begins another epoch: earlier kills by the kernel no longer count. */
void child_renew(struct child *child);
/* Pass on what it has printed, without blocking; of output without an end only some. */
void child_read_output(struct child *child, lines_cb callback, void *data);
/* Look at it again. A process that is gone is neither stopped nor starved. */
void child_look(struct child_look *look, pid_t pid, uint64_t now_ms);
/* Kill what is left of the child and its group, reap it, and close everything. Returns how it
 * ended, which may have been before this call. */
struct child_end child_kill(struct child *child);

#endif
