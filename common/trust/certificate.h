/* certificate.h - reads and checks X.509 certificates, all ECDSA over P-256.
 *
 * Times are seconds since 1970 and passed in, so that a test can make a certificate that has
 * expired. All texts are PEM. */
#ifndef COMMON_TRUST_CERTIFICATE_H
#define COMMON_TRUST_CERTIFICATE_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a certificate says about itself. */
struct certificate_facts {
    char name[64]; /* common name; "" if it has none */
    char unit[64]; /* organizational unit; "" if it has none */
    int64_t not_before_s, not_after_s;
};

/* Read the facts of the first certificate in the text. -EINVAL when some of it cannot be parsed. */
int certificate_read(const char *text, struct certificate_facts *out, struct error *err);
/* Read the DNS names of the certificate's holder, ended by NULL; addresses are listed among them in
 * certificates of ours. The caller frees each name and the array. -EINVAL as above. */
int certificate_read_hosts(const char *text, char ***out, struct error *err);
/* -EINVAL unless the certificate is valid at now_s; the text says how to mend that. */
int certificate_check_time(const struct certificate_facts *facts, int64_t now_s, struct error *err);
/* -EINVAL unless `key` is the unencrypted private key of the certificate. */
int certificate_check_key(const char *text, const char *key, struct error *err);

#endif
