/* child.h - one gimbal-executor process: started through the shim, talked to, watched, reaped.
 *
 * It dies with the thread that started it, which therefore has to be the program's main one. */
#ifndef WORKER_DAEMON_CHILD_H
#define WORKER_DAEMON_CHILD_H

#include "common/base/error.h"
#include "common/channel/channel.h"
#include "worker/hardware/cgroup.h"
#include "worker/supervisor/lines.h"
#include "worker/trail/trail.h"

#include <stdbool.h>
#include <sys/types.h>

struct child_options {
    const char *shim, *program;
    const char *const *arguments; /* behind --channel FD, NULL-ended */
    const char *cpuset;           /* its cores, "0-3" */
    int state_fd;                 /* the file for its state, lent, above 4; or -1 */
};

struct child {
    pid_t pid;
    int pid_fd;    /* readable when the process is gone */
    int output_fd; /* what it prints, not blocking; -1 once that has ended */
    struct channel channel;
    struct lines lines;
    struct trail *trail;       /* how far it is */
    struct cgroup_kills kills; /* when it was started, or taken into its epoch */
    bool killed;               /* by us */
};

struct child_end {
    char how[160]; /* as a sentence's end: "was killed by signal 9 (Killed)" */
    bool struck;   /* by a signal that was not ours, nor one that asks it to end */
    /* SIGKILL has ended it, which was not ours, and since its epoch began the kernel has killed for
     * memory here: it, as far as anyone can know. */
    bool for_memory;
};

/* -errno when it cannot be spawned; *out is then untouched. */
int child_start(const struct child_options *options, struct child *out, struct error *err);
/* A command to it. -EPIPE when it is gone; -EAGAIN when it has not read for a second. */
int child_send(struct child *child, const ProtobufCMessage *command, struct error *err);
/* To the whole process group. */
void child_signal(struct child *child, int signal);
/* It begins anew with another epoch: what the kernel has killed so far was not it. */
void child_renew(struct child *child);
/* Take what it has printed, without waiting. */
void child_read_output(struct child *child, lines_cb callback, void *data);
/* Kill whatever is left of it and its group, collect it and close everything; if pid_fd was
 * readable, it had ended before. */
struct child_end child_kill(struct child *child);

#endif
