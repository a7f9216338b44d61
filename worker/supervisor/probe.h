/* probe.h - which devices there are beside the cores, and how fast all are: seen and measured by
 * executors when the worker starts. It links no library of any device itself. */
#ifndef WORKER_SUPERVISOR_PROBE_H
#define WORKER_SUPERVISOR_PROBE_H

#include "worker/supervisor/hardware.h"

struct prober {
    const char *shim, *program;
    const char *cpuset; /* that executors run on */
    double crowd;       /* hardware_crowd() */
    size_t devices;     /* that one of them measures at most */
    const char *kept;   /* folder of what cores were measured to do; NULL: nothing is kept */
    bool measure;       /* whatever is kept */
    int stop_fd;        /* when it can be read nobody waits any more; it is left unread */
};

/* Have an executor look for devices of a kind, or of all kinds for NULL: as an answer, why there is
 * none. *out is yours to finish. */
int probe_find(const struct prober *prober, const char *kind, struct hardware_found *out,
               struct error *err);
/* Measure all CPU devices of the report at once, the others one by one, and then the links between
 * those, and set their profiles and rates, and when the oldest of them was measured: cores are as
 * they were measured in the last days, if they were. Waits for the executors, which takes a second
 * or two for each; -ETIMEDOUT when one does not compute or does so without an end, and -EINTR when
 * it was to stop. */
int probe_devices(const struct prober *prober, struct hardware_report *report, struct error *err);

#endif
