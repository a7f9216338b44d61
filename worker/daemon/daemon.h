/* daemon.h - carries out the supervisor's decisions: calls, processes, signals, the clock.
 *
 * A daemon is one node. One loop runs any number of them: a worker has one, a simulated fleet
 * hundreds, both with the same code. */
#ifndef WORKER_DAEMON_DAEMON_H
#define WORKER_DAEMON_DAEMON_H

#include "common/base/error.h"
#include "common/base/notify.h"
#include "common/hardware/hardware.h"

struct credentials;

struct daemon_options {
    const struct hardware_report *report;  /* with the profiles of its devices */
    const char *coordinator;               /* address */
    const struct credentials *credentials; /* certificates and credential for the coordinator */
    const char *state;                     /* folder for what must survive the worker */
    const char *shim, *executor;           /* paths; NULL: every assignment is refused */
};

struct daemon;

/* Create a daemon and begin to register. The options are lent until daemon_close, which the caller
 * must call on *out. Errors of the state folder, the fence file and the client. */
int daemon_open(const struct daemon_options *options, struct daemon **out, struct error *err);
/* Kill all executors and free the daemon. Accepts NULL. */
void daemon_close(struct daemon *daemon);

/* Run daemons until a signal arrives at signal_fd (a signalfd) and all of them have stopped because
 * of it, or until one of them gives up. To be called on the program's main thread. The service
 * manager is kept informed. Returns the exit status. */
int daemons_run(struct daemon *const *daemons, size_t count, int signal_fd, struct notify *notify);

#endif
