/* executor.h - starts an executor that trains all ranks on this machine. */
#ifndef COORDINATOR_CLI_LOCAL_EXECUTOR_H
#define COORDINATOR_CLI_LOCAL_EXECUTOR_H

#include "common/channel/channel.h"
#include "coordinator/cli/local/training.h"
#include "coordinator/cli/process.h"

/* Start it with the plan that was found, and a channel to it; what it writes to stdout and stderr
 * can be read from *lines. The caller ends all three, even after a failure, which leaves untouched
 * what was not reached. A negative errno. */
int executor_start(const struct training_options *options, struct child *child,
                   struct channel *channel, int *lines, struct error *err);

#endif
