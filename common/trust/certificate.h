/* certificate.h - makes keys and X.509 certificates, all ECDSA over P-256, and reads and checks
 * them.
 *
 * Times are seconds since 1970 and passed in, so that a test can make a certificate that has
 * expired. All texts are PEM. */
#ifndef COMMON_TRUST_CERTIFICATE_H
#define COMMON_TRUST_CERTIFICATE_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* What a certificate says about itself. */
struct certificate_facts {
    char name[64]; /* common name; "" if it has none */
    char unit[64]; /* organizational unit; "" if it has none */
    int64_t not_before_s, not_after_s;
};

/* Read the facts of the first certificate in the text. -EINVAL when some of it cannot be parsed. */
int certificate_read(const char *text, struct certificate_facts *out, struct error *err);
/* Read the DNS names of the certificate's holder, ended by NULL; addresses are listed among them if
 * certificate_make() wrote the certificate. The caller frees each name and the array. -EINVAL as
 * above. */
int certificate_read_hosts(const char *text, char ***out, struct error *err);
/* -EINVAL unless the certificate is valid at now_s; the text says how to mend that. */
int certificate_check_time(const struct certificate_facts *facts, int64_t now_s, struct error *err);
/* -EINVAL unless `key` is the unencrypted private key of the certificate. */
int certificate_check_key(const char *text, const char *key, struct error *err);

#endif
