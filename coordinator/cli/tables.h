/* tables.h - jobs and nodes as rows or as JSON. */
#ifndef COORDINATOR_CLI_TABLES_H
#define COORDINATOR_CLI_TABLES_H

#include "coordinator/cli/options.h"
#include "proto/cluster.pb-c.h"
#include "proto/job.pb-c.h"

void jobtable_print(const struct common *common, Gimbal__JobStatus *const *jobs, size_t count,
                    FILE *out);

void nodetable_print(const struct common *common, Gimbal__NodeStatus *const *nodes, size_t count,
                     FILE *out);

#endif
