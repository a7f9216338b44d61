/* certificate.c - reads certificates with mbedTLS, and checks their dates and keys. */
#include "common/trust/certificate.h"

#include "common/base/memory.h"

#include <errno.h>
#include <mbedtls/error.h>
#include <mbedtls/oid.h>
#include <mbedtls/x509_crt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int certificate_parse(mbedtls_x509_crt *crt, const char *text, struct error *err)
{
    char words[128];
    mbedtls_x509_crt_init(crt);
    int rc = mbedtls_x509_crt_parse(crt, (const unsigned char *)text, strlen(text) + 1);
    if (rc == 0)
        return 0;
    mbedtls_x509_crt_free(crt);
    if (rc > 0)
        return error_set(err, -EINVAL, "%d of its certificates cannot be read", rc);
    mbedtls_strerror(rc, words, sizeof words);
    return error_set(err, -EINVAL, "it is no certificate in PEM: %s", words);
}

static int64_t seconds(const mbedtls_x509_time *when)
{
    struct tm parts = {.tm_year = when->year - 1900,
                       .tm_mon = when->mon - 1,
                       .tm_mday = when->day,
                       .tm_hour = when->hour,
                       .tm_min = when->min,
                       .tm_sec = when->sec};
    return (int64_t)timegm(&parts);
}

/* The last attribute of this type in a distinguished name, truncated to `size`; "" if none. */
static void read_name(const mbedtls_x509_name *name, const char *kind, size_t kind_size, char *out,
                      size_t size)
{
    out[0] = '\0';
    for (; name; name = name->next)
        if (name->oid.len == kind_size && memcmp(name->oid.p, kind, kind_size) == 0)
            snprintf(out, size, "%.*s", (int)name->val.len, (const char *)name->val.p);
}

int certificate_read(const char *text, struct certificate_facts *out, struct error *err)
{
    mbedtls_x509_crt crt;
    int rc = certificate_parse(&crt, text, err);
    if (rc < 0)
        return rc;
    read_name(&crt.subject, MBEDTLS_OID_AT_CN, MBEDTLS_OID_SIZE(MBEDTLS_OID_AT_CN), out->name,
              sizeof out->name);
    read_name(&crt.subject, MBEDTLS_OID_AT_ORG_UNIT, MBEDTLS_OID_SIZE(MBEDTLS_OID_AT_ORG_UNIT),
              out->unit, sizeof out->unit);
    out->not_before_s = seconds(&crt.valid_from);
    out->not_after_s = seconds(&crt.valid_to);
    mbedtls_x509_crt_free(&crt);
    return 0;
}

int certificate_read_hosts(const char *text, char ***out, struct error *err)
{
    mbedtls_x509_crt crt;
    size_t count = 0, capacity = 0;
    int rc = certificate_parse(&crt, text, err);
    if (rc < 0)
        return rc;
    char **hosts = grow(NULL, 0, &capacity, sizeof *hosts);
    const mbedtls_x509_sequence *name = &crt.subject_alt_names;
    for (; name && name->buf.p; name = name->next) {
        if ((name->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK) != MBEDTLS_X509_SAN_DNS_NAME)
            continue;
        hosts[count++] = xasprintf("%.*s", (int)name->buf.len, (const char *)name->buf.p);
        hosts = grow(hosts, count, &capacity, sizeof *hosts);
    }
    mbedtls_x509_crt_free(&crt);
    *out = hosts;
    return 0;
}

static const char *print_day(char *out, size_t size, int64_t when_s)
{
    time_t when = (time_t)when_s;
    struct tm parts = {0};
    gmtime_r(&when, &parts);
    strftime(out, size, "%Y-%m-%d %H:%M UTC", &parts);
    return out;
}

int certificate_check_time(const struct certificate_facts *facts, int64_t now_s, struct error *err)
{
    char day[32], now[32];
    if (now_s > facts->not_after_s)
        return error_set(err, -EINVAL, "it expired on %s: have it issued anew",
                         print_day(day, sizeof day, facts->not_after_s));
    if (now_s < facts->not_before_s)
        return error_set(
            err, -EINVAL, "it is valid from %s on, and here it is %s: set this machine's clock",
            print_day(day, sizeof day, facts->not_before_s), print_day(now, sizeof now, now_s));
    return 0;
}

int certificate_check_key(const char *text, const char *key, struct error *err)
{
    mbedtls_x509_crt crt;
    mbedtls_pk_context pair;
    char words[128];
    int rc = certificate_parse(&crt, text, err);
    if (rc < 0)
        return rc;
    mbedtls_pk_init(&pair);
    rc = mbedtls_pk_parse_key(&pair, (const unsigned char *)key, strlen(key) + 1, NULL, 0);
    if (rc != 0) {
        mbedtls_strerror(rc, words, sizeof words);
        rc = error_set(err, -EINVAL, "it is no key in PEM without a password: %s", words);
    } else if (mbedtls_pk_check_pair(&crt.pk, &pair) != 0) {
        rc = error_set(err, -EINVAL, "it is not the key of the certificate beside it");
    }
    mbedtls_pk_free(&pair);
    mbedtls_x509_crt_free(&crt);
    return rc;
}
