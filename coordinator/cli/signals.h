/* signals.h - SIGINT, SIGTERM and SIGHUP as something to poll for. */
#ifndef COORDINATOR_CLI_SIGNALS_H
#define COORDINATOR_CLI_SIGNALS_H

#include "common/base/error.h"

/* Block them, before there are threads, and return a descriptor that is readable when one has
 * come; -errno. */
int signals_open(struct error *err);
/* The signal that has come, or 0; does not wait. */
int signals_take(int fd);

#endif
