/* jobtable.h - jobs as rows and as JSON. */
#ifndef COORDINATOR_CLI_JOBTABLE_H
#define COORDINATOR_CLI_JOBTABLE_H

#include "coordinator/cli/options.h"
#include "proto/job.pb-c.h"

/* "RUNNING" */
const char *jobtable_state(Gimbal__JobStatus__State state);
/* Done, failed or cancelled: nothing will change any more. */
bool jobtable_is_final(Gimbal__JobStatus__State state);

void jobtable_print(const struct common *common, Gimbal__JobStatus *const *jobs, size_t count,
                    FILE *out);

#endif
