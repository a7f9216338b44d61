/* daemon.h - the supervisor's decisions, carried out: calls, processes, signals, clock.
 *
 * A daemon is one node. One loop runs any number of them: a worker has one, a simulated fleet has
 * hundreds, and both are the same code. */
#ifndef WORKER_DAEMON_DAEMON_H
#define WORKER_DAEMON_DAEMON_H

#include "common/base/error.h"
#include "common/base/notify.h"
#include "common/hardware/hardware.h"

struct pass;

struct daemon_options {
    const struct hardware_report *report; /* with profiles */
    const char *coordinator;              /* its address */
    const struct pass *pass;              /* what lets this node in there */
    const char *state;                    /* folder for what must survive */
    const char *shim, *executor;          /* paths; NULL: assignments are refused */
};

struct daemon;

/* Begin to register; *out is yours, the options are lent for its life. */
int daemon_open(const struct daemon_options *options, struct daemon **out, struct error *err);
/* What runs is killed. Accepts NULL. */
void daemon_close(struct daemon *daemon);

/* Work until a signal comes by signal_fd, a signalfd, and all have stopped for it, or until one
 * of them gives up; on the program's main thread. The manager is told how they are. Returns the
 * exit status. */
int daemons_run(struct daemon *const *daemons, size_t count, int signal_fd, struct notify *notify);

#endif
