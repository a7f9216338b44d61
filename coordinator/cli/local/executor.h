/* executor.h - an executor of ours that trains all ranks on this machine. */
#ifndef COORDINATOR_CLI_LOCAL_EXECUTOR_H
#define COORDINATOR_CLI_LOCAL_EXECUTOR_H

#include "common/channel/channel.h"
#include "coordinator/cli/child.h"
#include "coordinator/cli/local/training.h"

/* Start one on the plan that was found, with a channel to it; both are the caller's to end, also
 * after a failure, which leaves untouched what it did not come to. A negative errno. */
int executor_start(const struct training_options *options, struct child *child,
                   struct channel *channel, struct error *err);

#endif
