/* admission.h - who is let into a cluster with TLS: tokens, joining, revoking. */
#ifndef COORDINATOR_CLI_ADMISSION_H
#define COORDINATOR_CLI_ADMISSION_H

#include "coordinator/cli/options.h"

struct admission_token {
    const char *role, *name; /* "worker" or "user"; name NULL: of anybody */
    double ttl_s;
    int64_t uses;
    const char *file; /* where the token goes, for its owner alone; NULL: to stdout */
};

/* Each calls the coordinator, prints, and returns an enum exit_code. */
int admission_issue(const struct common *common, const struct admission_token *wanted,
                    struct error *err);
/* Change the token in the file for a credential, which is kept beside the certificates. name
 * NULL: the login name. */
int admission_join(const struct common *common, const char *token_file, const char *name,
                   struct error *err);
int admission_revoke(const struct common *common, const char *role, const char *name,
                     struct error *err);
int admission_list(const struct common *common, struct error *err);

#endif
