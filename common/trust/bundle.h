/* bundle.h - a folder with the TLS identity of a process and the certificate authorities (CAs) that
 * it trusts. `gimbal cluster init` creates one per role.
 *
 *     tls.crt, tls.key   the certificate of the process and its private key
 *     ca.crt             the CA that signs the coordinator's certificate
 *     worker-ca.crt, user-ca.crt, admin-ca.crt
 *                        coordinator only: the CAs that sign the certificates of each role
 *
 * The certificate says which role the bundle is for: its organizational unit, or its common name if
 * it has no unit, is "coordinator", "worker", "user" or "admin". */
#ifndef COMMON_TRUST_BUNDLE_H
#define COMMON_TRUST_BUNDLE_H

#include "common/base/error.h"

#include <stdint.h>

enum bundle_role { BUNDLE_COORDINATOR, BUNDLE_WORKER, BUNDLE_USER, BUNDLE_ADMIN, BUNDLE_ROLES };

/* A loaded bundle. It owns its texts, which are PEM. */
struct bundle {
    char *directory;
    enum bundle_role role;
    char *certificate, *key;
    char *authority; /* ca.crt */
    /* The CA for callers of each role. NULL for the coordinator's own role, and in all bundles but
     * the coordinator's. */
    char *clients[BUNDLE_ROLES];
};

/* "coordinator", "worker", "user", "admin" */
const char *bundle_role_name(enum bundle_role role);

/* Read and check a bundle: all files exist, only the owner may read the key, the key fits the
 * certificate, all certificates are valid at now_s (seconds since 1970), and the role is one of
 * `roles`, a set of bits (1 << role). -EINVAL on any failure; the text names the file and what is
 * wrong with it. On success *out belongs to the caller. */
int bundle_load(const char *directory, unsigned roles, int64_t now_s, struct bundle **out,
                struct error *err);
/* Overwrites the key before freeing it. Accepts NULL. */
void bundle_destroy(struct bundle *bundle);

#endif
