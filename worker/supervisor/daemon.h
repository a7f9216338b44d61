/* daemon.h - the supervisor's decisions, carried out: calls, processes, signals, clock. */
#ifndef WORKER_SUPERVISOR_DAEMON_H
#define WORKER_SUPERVISOR_DAEMON_H

#include "common/base/error.h"
#include "common/hardware/hardware.h"

struct daemon_options {
    const struct hardware_report *report; /* with profiles */
    const char *coordinator;              /* tcp://HOST:PORT */
    const char *shim, *executor;          /* paths */
    int signal_fd;                        /* a signalfd: any signal means stop */
};

/* Work until told to stop, on the program's main thread; returns the exit status. -errno when it
 * cannot begin. */
int daemon_run(const struct daemon_options *options, struct error *err);

#endif
