/* admission.h - admits to a cluster with TLS: tokens, joining, revoking. */
#ifndef COORDINATOR_CLI_ADMISSION_H
#define COORDINATOR_CLI_ADMISSION_H

#include "coordinator/cli/options.h"

struct admission_token {
    const char *role, *name; /* role: "worker" or "user"; name NULL: anybody */
    double ttl_s;
    int64_t uses;
    const char *file; /* file for the token, readable by its owner only; NULL: stdout */
};

/* Each of these calls the coordinator, prints, and returns an enum exit_code. */
int admission_issue(const struct common *common, const struct admission_token *wanted,
                    struct error *err);
/* Exchange the token in the file for a credential, which is stored next to the certificates. name
 * NULL: the login name. */
int admission_join(const struct common *common, const char *token_file, const char *name,
                   struct error *err);
int admission_revoke(const struct common *common, const char *role, const char *name,
                     struct error *err);
int admission_list(const struct common *common, struct error *err);

#endif
