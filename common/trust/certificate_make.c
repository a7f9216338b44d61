/* certificate_make.c - makes X.509 version 3 certificates with mbedTLS.
 *
 * Release 2.28 of mbedTLS cannot write the extensions for subject alternative names and extended
 * key usage, so they are encoded here: RFC 5280, sections 4.2.1.6 and 4.2.1.12. */
#include "common/trust/certificate.h"

#include "common/base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <mbedtls/asn1write.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/oid.h>
#include <mbedtls/platform_util.h>
#include <mbedtls/x509_crt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_SIZE 4096
#define NAMES_SIZE 2048
#define SERIAL_SIZE 16

/* The mbedTLS objects needed to make one certificate. */
struct maker {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_pk_context key, issuer_key;
    mbedtls_x509_crt issuer;
    mbedtls_x509write_cert crt;
    mbedtls_mpi serial;
};

static void maker_init(struct maker *maker)
{
    mbedtls_entropy_init(&maker->entropy);
    mbedtls_ctr_drbg_init(&maker->random);
    mbedtls_pk_init(&maker->key);
    mbedtls_pk_init(&maker->issuer_key);
    mbedtls_x509_crt_init(&maker->issuer);
    mbedtls_x509write_crt_init(&maker->crt);
    mbedtls_mpi_init(&maker->serial);
}

static void maker_finish(struct maker *maker)
{
    mbedtls_mpi_free(&maker->serial);
    mbedtls_x509write_crt_free(&maker->crt);
    mbedtls_x509_crt_free(&maker->issuer);
    mbedtls_pk_free(&maker->issuer_key);
    mbedtls_pk_free(&maker->key);
    mbedtls_ctr_drbg_free(&maker->random);
    mbedtls_entropy_free(&maker->entropy);
}

/* Set the error from a code of mbedTLS; returns -EINVAL. */
static int fail(int rc, const char *what, struct error *err)
{
    char words[128];
    mbedtls_strerror(rc, words, sizeof words);
    return error_set(err, -EINVAL, "%s: %s", what, words);
}

/* Draw a random serial number: positive, and without a leading zero byte. */
static int draw_serial(struct maker *maker)
{
    unsigned char bytes[SERIAL_SIZE];
    int rc = mbedtls_ctr_drbg_random(&maker->random, bytes, sizeof bytes);
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40);
    return rc ? rc : mbedtls_mpi_read_binary(&maker->serial, bytes, sizeof bytes);
}

static int draw(struct maker *maker)
{
    int rc = mbedtls_ctr_drbg_seed(&maker->random, mbedtls_entropy_func, &maker->entropy, NULL, 0);
    if (rc == 0)
        rc = mbedtls_pk_setup(&maker->key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));
    if (rc == 0)
        rc = mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(maker->key),
                                 mbedtls_ctr_drbg_random, &maker->random);
    if (rc == 0)
        rc = draw_serial(maker);
    return rc;
}

/* Write one GeneralName in front of *at: mbedTLS writes ASN.1 backwards. Returns its size, or an
 * error of mbedTLS. */
static int write_name(unsigned char **at, unsigned char *start, unsigned char tag,
                      const void *bytes, size_t size)
{
    int sum = mbedtls_asn1_write_raw_buffer(at, start, bytes, size);
    if (sum < 0)
        return sum;
    int rc = mbedtls_asn1_write_len(at, start, size);
    if (rc < 0)
        return rc;
    sum += rc;
    rc = mbedtls_asn1_write_tag(at, start, (unsigned char)(MBEDTLS_ASN1_CONTEXT_SPECIFIC | tag));
    return rc < 0 ? rc : sum + rc;
}

#define TAG_DNS 2
#define TAG_ADDRESS 7

/* Write a host as a DNS name and, if it is an IP address, as an address too: this release of
 * mbedTLS compares the dialled host with DNS names only, while other implementations compare
 * addresses with addresses only. */
static int write_host(unsigned char **at, unsigned char *start, const char *host)
{
    unsigned char address[16];
    int sum = 0;
    size_t size = inet_pton(AF_INET, host, address) == 1    ? 4
                  : inet_pton(AF_INET6, host, address) == 1 ? 16
                                                            : 0;
    if (size > 0)
        sum = write_name(at, start, TAG_ADDRESS, address, size);
    if (sum < 0)
        return sum;
    int rc = write_name(at, start, TAG_DNS, host, strlen(host));
    return rc < 0 ? rc : sum + rc;
}

static int set_hosts(struct maker *maker, const char *const *hosts)
{
    unsigned char bytes[NAMES_SIZE], *at = bytes + sizeof bytes;
    size_t size = 0, count = 0;
    int rc = 0;
    while (hosts[count])
        count++;
    while (count > 0 && rc >= 0) {
        rc = write_host(&at, bytes, hosts[--count]);
        size += rc > 0 ? (size_t)rc : 0;
    }
    if (rc >= 0)
        rc = mbedtls_asn1_write_len(&at, bytes, size);
    if (rc >= 0)
        rc = mbedtls_asn1_write_tag(&at, bytes, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE);
    if (rc < 0)
        return rc;
    return mbedtls_x509write_crt_set_extension(&maker->crt, MBEDTLS_OID_SUBJECT_ALT_NAME,
                                               MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME), 0,
                                               at, (size_t)(bytes + sizeof bytes - at));
}

/* Limit the key to its purpose: a worker's certificate must not pass for that of a server. */
static int set_use(struct maker *maker, enum certificate_use use)
{
    /* SEQUENCE { OID 1.3.6.1.5.5.7.3.x }: 1 is serverAuth, 2 clientAuth */
    unsigned char oid[] = {0x30, 0x0a, 0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01};
    if (use == CERTIFICATE_AUTHORITY)
        return mbedtls_x509write_crt_set_key_usage(&maker->crt, MBEDTLS_X509_KU_KEY_CERT_SIGN |
                                                                    MBEDTLS_X509_KU_CRL_SIGN);
    if (use == CERTIFICATE_CLIENT)
        oid[sizeof oid - 1] = 2;
    int rc = mbedtls_x509write_crt_set_key_usage(&maker->crt, MBEDTLS_X509_KU_DIGITAL_SIGNATURE);
    return rc ? rc
              : mbedtls_x509write_crt_set_extension(
                    &maker->crt, MBEDTLS_OID_EXTENDED_KEY_USAGE,
                    MBEDTLS_OID_SIZE(MBEDTLS_OID_EXTENDED_KEY_USAGE), 0, oid, sizeof oid);
}

static int set_validity(struct maker *maker, const struct certificate_request *request)
{
    char from[32], to[32];
    struct tm parts;
    time_t begins = (time_t)request->not_before_s, ends = (time_t)request->not_after_s;
    if (!gmtime_r(&begins, &parts) || strftime(from, sizeof from, "%Y%m%d%H%M%S", &parts) != 14 ||
        !gmtime_r(&ends, &parts) || strftime(to, sizeof to, "%Y%m%d%H%M%S", &parts) != 14)
        return MBEDTLS_ERR_X509_BAD_INPUT_DATA;
    return mbedtls_x509write_crt_set_validity(&maker->crt, from, to);
}

static int set_names(struct maker *maker, const struct certificate_request *request,
                     const struct certificate *issuer)
{
    char issuer_name[256];
    char *subject = request->unit ? xasprintf("CN=%s,OU=%s,O=Gimbal", request->name, request->unit)
                                  : xasprintf("CN=%s,O=Gimbal", request->name);
    int rc = mbedtls_x509write_crt_set_subject_name(&maker->crt, subject);
    if (rc == 0 && issuer) {
        int length = mbedtls_x509_dn_gets(issuer_name, sizeof issuer_name, &maker->issuer.subject);
        rc = length < 0 ? length : mbedtls_x509write_crt_set_issuer_name(&maker->crt, issuer_name);
    } else if (rc == 0) {
        rc = mbedtls_x509write_crt_set_issuer_name(&maker->crt, subject);
    }
    free(subject);
    return rc;
}

/* Set everything except keys and names. */
static int describe(struct maker *maker, const struct certificate_request *request)
{
    mbedtls_x509write_cert *crt = &maker->crt;
    bool authority = request->use == CERTIFICATE_AUTHORITY;
    mbedtls_x509write_crt_set_version(crt, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(crt, MBEDTLS_MD_SHA256);
    int rc = mbedtls_x509write_crt_set_serial(crt, &maker->serial);
    if (rc == 0)
        rc = set_validity(maker, request);
    if (rc == 0) /* path length 0: a CA cannot sign other CAs */
        rc = mbedtls_x509write_crt_set_basic_constraints(crt, authority, authority ? 0 : -1);
    if (rc == 0)
        rc = set_use(maker, request->use);
    if (rc == 0 && request->hosts && request->hosts[0])
        rc = set_hosts(maker, request->hosts);
    if (rc == 0)
        rc = mbedtls_x509write_crt_set_subject_key_identifier(crt);
    if (rc == 0)
        rc = mbedtls_x509write_crt_set_authority_key_identifier(crt);
    return rc;
}

static int read_issuer(struct maker *maker, const struct certificate *issuer, struct error *err)
{
    if (!issuer)
        return 0;
    int rc = mbedtls_x509_crt_parse(&maker->issuer, (const unsigned char *)issuer->text,
                                    strlen(issuer->text) + 1);
    if (rc == 0)
        rc = mbedtls_pk_parse_key(&maker->issuer_key, (const unsigned char *)issuer->key,
                                  strlen(issuer->key) + 1, NULL, 0);
    return rc ? fail(rc, "read the authority that is to sign", err) : 0;
}

static int print(struct maker *maker, struct certificate *out)
{
    unsigned char text[TEXT_SIZE], key[TEXT_SIZE];
    int rc = mbedtls_x509write_crt_pem(&maker->crt, text, sizeof text, mbedtls_ctr_drbg_random,
                                       &maker->random);
    if (rc == 0)
        rc = mbedtls_pk_write_key_pem(&maker->key, key, sizeof key);
    if (rc == 0) {
        out->text = xstrdup((const char *)text);
        out->key = xstrdup((const char *)key);
    }
    mbedtls_platform_zeroize(key, sizeof key);
    return rc;
}

int certificate_make(const struct certificate_request *request, const struct certificate *issuer,
                     struct certificate *out, struct error *err)
{
    struct maker maker;
    maker_init(&maker);
    int rc = read_issuer(&maker, issuer, err);
    if (rc == 0) {
        rc = draw(&maker);
        mbedtls_x509write_crt_set_subject_key(&maker.crt, &maker.key);
        mbedtls_x509write_crt_set_issuer_key(&maker.crt, issuer ? &maker.issuer_key : &maker.key);
        if (rc == 0)
            rc = set_names(&maker, request, issuer);
        if (rc == 0)
            rc = describe(&maker, request);
        if (rc == 0)
            rc = print(&maker, out);
        if (rc != 0)
            rc = fail(rc, "make a certificate", err);
    }
    maker_finish(&maker);
    return rc < 0 ? error_prefix(err, rc, "%s", request->name) : 0;
}

void certificate_finish(struct certificate *certificate)
{
    if (certificate->key)
        mbedtls_platform_zeroize(certificate->key, strlen(certificate->key));
    free(certificate->key);
    free(certificate->text);
    *certificate = (struct certificate){0};
}
