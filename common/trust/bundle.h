/* bundle.h - the folder that says who a process is and whom it believes: `gimbal cluster init`
 * makes one per role.
 *
 *     tls.crt, tls.key   our certificate and its key
 *     ca.crt             who signs the coordinator's certificate
 *     worker-ca.crt, user-ca.crt, admin-ca.crt
 *                        in the coordinator's: who signs those of each role
 *
 * Which role a bundle is for, its certificate says: its organizational unit, or its common name
 * where it has no unit, is "coordinator", "worker", "user" or "admin". */
#ifndef COMMON_TRUST_BUNDLE_H
#define COMMON_TRUST_BUNDLE_H

#include "common/base/error.h"

#include <stdint.h>

enum bundle_role { BUNDLE_COORDINATOR, BUNDLE_WORKER, BUNDLE_USER, BUNDLE_ADMIN, BUNDLE_ROLES };

/* All texts are PEM. */
struct bundle {
    char *directory;
    enum bundle_role role;
    char *certificate, *key;
    char *authority;             /* ca.crt */
    char *clients[BUNDLE_ROLES]; /* of a coordinator: the role's authority; else, and for itself,
                                  * NULL */
};

/* "coordinator", "worker", "user", "admin" */
const char *bundle_role_name(enum bundle_role role);

/* Read and check the folder: all files there, the key for nobody else to read and that of the
 * certificate, nothing expired at now_s, and the role one of `roles`, a set of bits (1 << role).
 * -EINVAL with the file and what is wrong with it. */
int bundle_load(const char *directory, unsigned roles, int64_t now_s, struct bundle **out,
                struct error *err);
/* Accepts NULL; overwrites the key. */
void bundle_destroy(struct bundle *bundle);

#endif
