/* authority.h - creates a cluster's certificate authorities (CAs) and the bundles that they sign.
 *
 *     DIR/ca/            four CAs, {server,worker,user,admin}.{crt,key}: to be kept offline
 *     DIR/coordinator/   DIR/worker/  DIR/user/  DIR/admin/
 *                        one bundle each (common/trust/bundle.h)
 *
 * There is one CA per role because NNG only tells whether a peer's certificate was verified, not
 * what it says. So each listener accepts a single CA, and that tells the roles of callers apart. */
#ifndef COORDINATOR_CLI_AUTHORITY_H
#define COORDINATOR_CLI_AUTHORITY_H

#include "common/base/error.h"

#include <stdint.h>

/* How long the CAs' own certificates are valid. */
#define AUTHORITY_DAYS 3650

struct authority_options {
    const char *directory; /* created if missing; its parent must exist */
    /* The host names and addresses by which the coordinator is reached, 1 to 32, ended by NULL.
     * For authority_renew() NULL means those of its present certificate. */
    const char *const *hosts;
    unsigned days; /* how long the bundles' certificates are valid; 1 to AUTHORITY_DAYS */
    int64_t now_s; /* the present time, in seconds since 1970 */
};

/* Create CAs and bundles. -EEXIST when the folder already has any of them, -EINVAL when a host is
 * not valid or their number is not; otherwise the negative errno of a failed file operation. */
int authority_create(const struct authority_options *options, struct error *err);
/* Replace keys and certificates of the bundles by new ones, signed by the CAs in DIR/ca. -ENOENT
 * when there are no CAs; -EINVAL when one has expired, would expire within `days`, or does not fit
 * its key. */
int authority_renew(const struct authority_options *options, struct error *err);

/* What all of these are made of. Times are seconds since 1970; all texts are PEM. */

enum certificate_use {
    CERTIFICATE_AUTHORITY, /* signs other certificates, and does nothing else */
    CERTIFICATE_SERVER,
    CERTIFICATE_CLIENT,
};

struct certificate_request {
    enum certificate_use use;
    const char *name; /* common name, for people */
    const char *unit; /* organizational unit: the role; NULL: none */
    /* Servers only: the names and addresses by which it is reached, ended by NULL. */
    const char *const *hosts;
    int64_t not_before_s, not_after_s;
};

/* A certificate and its private key, freed with certificate_finish(). */
struct certificate {
    char *text;
    char *key;
};

/* Make a new key and a certificate for it, signed by `issuer`, or by itself if that is NULL.
 * -EINVAL when `issuer` is not a certificate with its key, or a host or name cannot be encoded; the
 * text begins with the name. */
int certificate_make(const struct certificate_request *request, const struct certificate *issuer,
                     struct certificate *out, struct error *err);
/* Overwrites the key before freeing it. Accepts a zeroed struct. */
void certificate_finish(struct certificate *certificate);

#endif
