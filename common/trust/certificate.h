/* certificate.h - keys and certificates: made here, all ECDSA over P-256, and looked into.
 *
 * Times are seconds of the calendar and passed in, so that a test can make a certificate that
 * has expired. All texts are PEM. */
#ifndef COMMON_TRUST_CERTIFICATE_H
#define COMMON_TRUST_CERTIFICATE_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum certificate_use {
    CERTIFICATE_AUTHORITY, /* signs others, and nothing else */
    CERTIFICATE_SERVER,
    CERTIFICATE_CLIENT,
};

struct certificate_request {
    enum certificate_use use;
    const char *name; /* common name, for people */
    const char *unit; /* organizational unit: the role; NULL: none */
    const char *const
        *hosts; /* of a server: names and addresses that it is called by, NULL-ended */
    int64_t not_before_s, not_after_s;
};

/* A certificate and its key, yours by certificate_finish. */
struct certificate {
    char *text;
    char *key;
};

/* A new key, and a certificate for it: signed by issuer, or by itself where that is NULL. -EINVAL
 * when issuer is no certificate and key, or a host or name cannot be written. */
int certificate_make(const struct certificate_request *request, const struct certificate *issuer,
                     struct certificate *out, struct error *err);
/* Accepts a zeroed one; overwrites the key. */
void certificate_finish(struct certificate *certificate);

/* What a certificate, the first of the text, says of itself. */
struct certificate_facts {
    char name[64]; /* common name, and organizational unit: "" where it has none */
    char unit[64];
    int64_t not_before_s, not_after_s;
};

/* -EINVAL when the text is no certificate. */
int certificate_read(const char *text, struct certificate_facts *out, struct error *err);
/* The names that its holder is called by, NULL-ended: yours, each and the array. */
int certificate_read_hosts(const char *text, char ***out, struct error *err);
/* -EINVAL unless the time is one at which the certificate is valid. */
int certificate_check_time(const struct certificate_facts *facts, int64_t now_s, struct error *err);
/* -EINVAL unless key is that of the certificate. */
int certificate_check_key(const char *text, const char *key, struct error *err);

#endif
