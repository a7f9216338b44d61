/* authority.h - a cluster's own authorities, and the bundles that they sign.
 *
 *     DIR/ca/            four authorities, {server,worker,user,admin}.{crt,key}: belongs offline
 *     DIR/coordinator/   DIR/worker/  DIR/user/  DIR/admin/   a bundle each, as bundle.h has it
 *
 * One authority per role, because NNG tells of a peer only that its certificate was verified:
 * which authority a listener asks for is what tells its callers apart. */
#ifndef COMMON_TRUST_AUTHORITY_H
#define COMMON_TRUST_AUTHORITY_H

#include "common/base/error.h"

#include <stdint.h>

/* How long the authorities themselves are valid. */
#define AUTHORITY_DAYS 3650

struct authority_options {
    const char *directory;    /* made where it is not there; its parent must be */
    const char *const *hosts; /* what the coordinator is called by, NULL-ended; at renewal NULL:
                               * those of its certificate now */
    unsigned days;            /* of the bundles' certificates; 1 to AUTHORITY_DAYS */
    int64_t now_s;            /* of the calendar */
};

/* New authorities and bundles. -EEXIST when the folder has some, -EINVAL for a host that is none,
 * else as files fail. */
int authority_create(const struct authority_options *options, struct error *err);
/* New keys and certificates in the bundles, signed by the authorities of DIR/ca. -ENOENT when
 * there are none. */
int authority_renew(const struct authority_options *options, struct error *err);

#endif
