/* probe_internal.h - what the probe of devices and that of their links share. */
#ifndef WORKER_DAEMON_PROBE_INTERNAL_H
#define WORKER_DAEMON_PROBE_INTERNAL_H

#include "proto/executor.pb-c.h"
#include "worker/daemon/probe.h"

/* Start an executor with these arguments, until it has said what it has to; yours. */
int probe_ask(const struct prober *prober, const char *const *arguments,
              Gimbal__ExecutorEvent__EventCase wanted, Gimbal__ExecutorEvent **out,
              struct error *err);
/* Of all devices that were measured and have others of their module beside them: the link to those
 * in their profiles. Where it cannot be measured a line of the log says so, and profiles stay as
 * they are. -EINTR. */
int probe_links(const struct prober *prober, struct hardware_report *report, struct error *err);

#endif
