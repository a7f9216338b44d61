/* living.h - the cluster as it is now, for whoever plans without the coordinator. */
#ifndef COORDINATOR_CLI_PLANS_LIVING_H
#define COORDINATOR_CLI_PLANS_LIVING_H

#include "common/base/error.h"
#include "coordinator/cli/options.h"

/* The coordinator's nodes that are alive, as `gimbal nodes -o json` writes them; yours. Whose
 * devices are taken makes no difference. An enum exit_code; EXIT_PRECONDITION: none is alive. */
int living_nodes(const struct common *common, char **out, struct error *err);

#endif
