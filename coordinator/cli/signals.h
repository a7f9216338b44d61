/* signals.h - SIGINT, SIGTERM and SIGHUP as a descriptor to poll. */
#ifndef COORDINATOR_CLI_SIGNALS_H
#define COORDINATOR_CLI_SIGNALS_H

#include "common/base/error.h"

/* Block them, before there are threads, and return a descriptor that is readable when one has
 * arrived; a negative errno. */
int signals_open(struct error *err);
/* The signal that has arrived, or 0; does not wait. */
int signals_take(int fd);

#endif
