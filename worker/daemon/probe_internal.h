/* probe_internal.h - shared by the probes of devices and of links. */
#ifndef WORKER_DAEMON_PROBE_INTERNAL_H
#define WORKER_DAEMON_PROBE_INTERNAL_H

#include "proto/executor.pb-c.h"
#include "worker/daemon/probe.h"

/* Run an executor with these arguments until it has sent the wanted event, which the caller frees.
 * -EINTR if stopped meanwhile; otherwise an error with the executor's last words. */
int probe_ask(const struct prober *prober, const char *const *arguments,
              Gimbal__ExecutorEvent__EventCase wanted, Gimbal__ExecutorEvent **out,
              struct error *err);
/* Measure the link between devices of the same module, and write it into their profiles. If it
 * cannot be measured, that is logged and the profiles stay as they are. Only -EINTR is returned. */
int probe_links(const struct prober *prober, struct hardware_report *report, struct error *err);

#endif
