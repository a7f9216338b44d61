/* submission.h - the call Submit, and what the coordinator made of it. */
#ifndef COORDINATOR_CLI_SUBMISSION_H
#define COORDINATOR_CLI_SUBMISSION_H

#include "coordinator/cli/client.h"

struct submission {
    char *job;     /* its name in the cluster */
    char *waiting; /* why it cannot be placed now; "" where it can */
};

/* yaml: the job file's text; plan: JSON, or NULL for the coordinator's choice. An enum exit_code:
 * EXIT_NO_PLAN when no plan can be. On EXIT_DONE the submission is the caller's to finish. */
int submission_send(struct client *client, const char *name, const char *yaml, const char *plan,
                    bool dry_run, struct submission *submission, struct error *err);
/* Accepts a zeroed one. */
void submission_finish(struct submission *submission);

#endif
