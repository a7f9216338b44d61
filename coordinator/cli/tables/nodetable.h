/* nodetable.h - prints nodes as rows or as JSON. */
#ifndef COORDINATOR_CLI_TABLES_NODETABLE_H
#define COORDINATOR_CLI_TABLES_NODETABLE_H

#include "coordinator/cli/options.h"
#include "proto/cluster.pb-c.h"

void nodetable_print(const struct common *common, Gimbal__NodeStatus *const *nodes, size_t count,
                     FILE *out);

#endif
