/* fleet.h - many nodes in one process, to see what a coordinator bears.
 *
 * Each has its own supervisor, client, heartbeats and watch, and reports this machine's hardware
 * under its own name; none has executors, so that an assignment is refused in words. */
#ifndef WORKER_DAEMON_FLEET_H
#define WORKER_DAEMON_FLEET_H

#include "worker/daemon/daemon.h"

/* Be count nodes, NAME-0001 and so on for the node of the options' report, until told to stop.
 * Returns the exit status, or -errno when they cannot begin. */
int fleet_run(const struct daemon_options *options, unsigned count, int signal_fd,
              struct notify *notify, struct error *err);

#endif
