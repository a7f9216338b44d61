/* jobtable.h - prints jobs as rows or as JSON. */
#ifndef COORDINATOR_CLI_TABLES_JOBTABLE_H
#define COORDINATOR_CLI_TABLES_JOBTABLE_H

#include "coordinator/cli/options.h"
#include "proto/job.pb-c.h"

void jobtable_print(const struct common *common, Gimbal__JobStatus *const *jobs, size_t count,
                    FILE *out);

#endif
