/* living.h - the cluster as it is now, for planning without the coordinator. */
#ifndef COORDINATOR_CLI_PLANS_LIVING_H
#define COORDINATOR_CLI_PLANS_LIVING_H

#include "common/base/error.h"
#include "coordinator/cli/options.h"

/* The nodes that are alive in the form of `gimbal nodes -o json`, whether or not their devices are
 * in use; the caller frees *out. An enum exit_code; EXIT_AGAIN: none is alive, or all are
 * drained. */
int living_nodes(const struct common *common, char **out, struct error *err);
/* If `code` says that there is no coordinator, or no node now, add to the message how to plan
 * without them; returns code. */
int living_suggest(int code, struct error *err);

#endif
