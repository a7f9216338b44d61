/* submission.h - the Submit call and its outcome. */
#ifndef COORDINATOR_CLI_SUBMISSION_H
#define COORDINATOR_CLI_SUBMISSION_H

#include "coordinator/cli/client.h"

struct submission {
    char *job;     /* its id in the cluster */
    char *waiting; /* why it cannot be placed now; "" if it can */
};

/* yaml: text of the job file; plan: JSON, or NULL for the coordinator's choice. An enum exit_code:
 * EXIT_NO_PLAN if there can be no plan. On EXIT_DONE the caller finishes the submission. */
int submission_send(struct client *client, const char *name, const char *yaml, const char *plan,
                    bool dry_run, struct submission *submission, struct error *err);
/* Accepts a zeroed struct. */
void submission_finish(struct submission *submission);

#endif
