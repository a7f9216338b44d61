/* nodetable.h - nodes as rows and as JSON. */
#ifndef COORDINATOR_CLI_NODETABLE_H
#define COORDINATOR_CLI_NODETABLE_H

#include "coordinator/cli/options.h"
#include "proto/cluster.pb-c.h"

/* What common/hardware writes of a recorded node, and how the node is now. */
json_t *nodetable_json(const Gimbal__NodeStatus *node);
void nodetable_print(const struct common *common, Gimbal__NodeStatus *const *nodes, size_t count,
                     FILE *out);

#endif
