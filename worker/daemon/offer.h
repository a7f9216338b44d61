/* offer.h - what this worker offers: pieces of its cores, or devices that have memory of their own;
 * measured. */
#ifndef WORKER_DAEMON_OFFER_H
#define WORKER_DAEMON_OFFER_H

#include "common/hardware/hardware.h"
#include "worker/daemon/settings.h"

/* What shows without looking for devices: are there such cores, and is there such a kind of device,
 * if not here? -EINVAL in words. */
int offer_check_settings(const struct worker_settings *settings, struct error *err);
/* What would be offered, not measured, and without an address yet; errors as of offer_make. The
 * caller owns *out. */
int offer_look(const struct worker_settings *settings, const char *shim, const char *executor,
               int stop_fd, struct hardware_report **out, struct error *err);
/* Where ranks of other nodes find those of this one, in the report. -EINVAL, -EHOSTUNREACH. */
int offer_address(const struct worker_settings *settings, struct hardware_report *report,
                  struct error *err);
/* What would be offered, in a line of the log; nothing is measured, and nobody is told. Errors as
 * of offer_make. */
int offer_check(const struct worker_settings *settings, const char *shim, const char *executor,
                int stop_fd, struct error *err);

/* Waits for executors, which look and measure: seconds. -EINVAL: the settings do not fit the
 * machine; -ENODEV: it has no such device, or it cannot be measured; -EINTR: stop_fd could be read
 * before. The caller owns *out. */
int offer_make(const struct worker_settings *settings, const char *shim, const char *executor,
               int stop_fd, struct hardware_report **out, struct error *err);

#endif
