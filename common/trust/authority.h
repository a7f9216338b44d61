/* authority.h - creates a cluster's certificate authorities (CAs) and the bundles that they sign.
 *
 *     DIR/ca/            four CAs, {server,worker,user,admin}.{crt,key}: to be kept offline
 *     DIR/coordinator/   DIR/worker/  DIR/user/  DIR/admin/   one bundle each (bundle.h)
 *
 * There is one CA per role because NNG only tells whether a peer's certificate was verified, not
 * what it says. So each listener accepts a single CA, and that tells the roles of callers apart. */
#ifndef COMMON_TRUST_AUTHORITY_H
#define COMMON_TRUST_AUTHORITY_H

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

#endif
