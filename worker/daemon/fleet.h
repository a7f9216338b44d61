/* fleet.h - simulates many nodes in one process, to see how many a coordinator can handle.
 *
 * Each node has its own supervisor, client, heartbeats and watch, and reports this machine's
 * hardware under its own name. None has executors: every assignment ends with a report that says
 * so. */
#ifndef WORKER_DAEMON_FLEET_H
#define WORKER_DAEMON_FLEET_H

#include "worker/daemon/daemon.h"

/* Run `count` nodes, named NAME-0001 and so on after the node in the options' report, until told to
 * stop. Returns the exit status, or -errno if they cannot be created. */
int fleet_run(const struct daemon_options *options, unsigned count, int signal_fd,
              struct notify *notify, struct error *err);

#endif
