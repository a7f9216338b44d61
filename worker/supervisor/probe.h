/* probe.h - how fast this worker's devices are, measured by an executor when the worker starts. */
#ifndef WORKER_SUPERVISOR_PROBE_H
#define WORKER_SUPERVISOR_PROBE_H

#include "common/base/error.h"
#include "common/hardware/hardware.h"

/* Measure all CPU devices of the report at once, and set their profiles; crowd is
 * hardware_crowd(). Waits for the executor, which computes for a second or two; -ETIMEDOUT when it
 * does not compute or does so without an end, and -EINTR as soon as stop_fd can be read, which it
 * leaves unread. */
int probe_devices(const char *shim, const char *program, double crowd, int stop_fd,
                  struct hardware_report *report, struct error *err);

#endif
