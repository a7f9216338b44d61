/* authority.c - writes the CAs and bundles of a cluster as files, and makes the X.509 version 3
 * certificates in them with mbedTLS.
 *
 * A renewal issues the bundles anew under the same CAs, so that processes with an older bundle and
 * those with a newer one still trust each other.
 *
 * Release 2.28 of mbedTLS cannot write the extensions for subject alternative names and extended
 * key usage, so they are encoded here: RFC 5280, sections 4.2.1.6 and 4.2.1.12. */
#include "coordinator/cli/authority.h"

#include "common/base/memory.h"
#include "common/trust/bundle.h"
#include "common/trust/certificate.h"
#include "common/trust/secret.h"

#include <arpa/inet.h>
#include <dirent.h>
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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DAY_S 86400
/* Certificates are backdated by this, so that machines whose clocks are slow accept them too. */
#define EARLIER_S 3600
#define HOSTS_MAX 32
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
static int maker_fail(int rc, const char *what, struct error *err)
{
    char words[128];
    mbedtls_strerror(rc, words, sizeof words);
    return error_set(err, -EINVAL, "%s: %s", what, words);
}

/* Draw a random serial number: positive, and without a leading zero byte. */
static int maker_draw_serial(struct maker *maker)
{
    unsigned char bytes[SERIAL_SIZE];
    int rc = mbedtls_ctr_drbg_random(&maker->random, bytes, sizeof bytes);
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40);
    return rc ? rc : mbedtls_mpi_read_binary(&maker->serial, bytes, sizeof bytes);
}

static int maker_draw(struct maker *maker)
{
    int rc = mbedtls_ctr_drbg_seed(&maker->random, mbedtls_entropy_func, &maker->entropy, NULL, 0);
    if (rc == 0)
        rc = mbedtls_pk_setup(&maker->key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));
    if (rc == 0)
        rc = mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(maker->key),
                                 mbedtls_ctr_drbg_random, &maker->random);
    if (rc == 0)
        rc = maker_draw_serial(maker);
    return rc;
}

/* Write one GeneralName in front of *at: mbedTLS writes ASN.1 backwards. Returns its size, or an
 * error of mbedTLS. */
static int maker_write_name(unsigned char **at, unsigned char *start, unsigned char tag,
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
static int maker_write_host(unsigned char **at, unsigned char *start, const char *host)
{
    unsigned char address[16];
    int sum = 0;
    size_t size = inet_pton(AF_INET, host, address) == 1    ? 4
                  : inet_pton(AF_INET6, host, address) == 1 ? 16
                                                            : 0;
    if (size > 0)
        sum = maker_write_name(at, start, TAG_ADDRESS, address, size);
    if (sum < 0)
        return sum;
    int rc = maker_write_name(at, start, TAG_DNS, host, strlen(host));
    return rc < 0 ? rc : sum + rc;
}

static int maker_set_hosts(struct maker *maker, const char *const *hosts)
{
    unsigned char bytes[NAMES_SIZE], *at = bytes + sizeof bytes;
    size_t size = 0, count = 0;
    int rc = 0;
    while (hosts[count])
        count++;
    while (count > 0 && rc >= 0) {
        rc = maker_write_host(&at, bytes, hosts[--count]);
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
static int maker_set_use(struct maker *maker, enum certificate_use use)
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

static int maker_set_validity(struct maker *maker, const struct certificate_request *request)
{
    char from[32], to[32];
    struct tm parts;
    time_t begins = (time_t)request->not_before_s, ends = (time_t)request->not_after_s;
    if (!gmtime_r(&begins, &parts) || strftime(from, sizeof from, "%Y%m%d%H%M%S", &parts) != 14 ||
        !gmtime_r(&ends, &parts) || strftime(to, sizeof to, "%Y%m%d%H%M%S", &parts) != 14)
        return MBEDTLS_ERR_X509_BAD_INPUT_DATA;
    return mbedtls_x509write_crt_set_validity(&maker->crt, from, to);
}

static int maker_set_names(struct maker *maker, const struct certificate_request *request,
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
static int maker_describe(struct maker *maker, const struct certificate_request *request)
{
    mbedtls_x509write_cert *crt = &maker->crt;
    bool authority = request->use == CERTIFICATE_AUTHORITY;
    mbedtls_x509write_crt_set_version(crt, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(crt, MBEDTLS_MD_SHA256);
    int rc = mbedtls_x509write_crt_set_serial(crt, &maker->serial);
    if (rc == 0)
        rc = maker_set_validity(maker, request);
    if (rc == 0) /* path length 0: a CA cannot sign other CAs */
        rc = mbedtls_x509write_crt_set_basic_constraints(crt, authority, authority ? 0 : -1);
    if (rc == 0)
        rc = maker_set_use(maker, request->use);
    if (rc == 0 && request->hosts && request->hosts[0])
        rc = maker_set_hosts(maker, request->hosts);
    if (rc == 0)
        rc = mbedtls_x509write_crt_set_subject_key_identifier(crt);
    if (rc == 0)
        rc = mbedtls_x509write_crt_set_authority_key_identifier(crt);
    return rc;
}

static int maker_read_issuer(struct maker *maker, const struct certificate *issuer,
                             struct error *err)
{
    if (!issuer)
        return 0;
    int rc = mbedtls_x509_crt_parse(&maker->issuer, (const unsigned char *)issuer->text,
                                    strlen(issuer->text) + 1);
    if (rc == 0)
        rc = mbedtls_pk_parse_key(&maker->issuer_key, (const unsigned char *)issuer->key,
                                  strlen(issuer->key) + 1, NULL, 0);
    return rc ? maker_fail(rc, "read the authority that is to sign", err) : 0;
}

static int maker_print(struct maker *maker, struct certificate *out)
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
    int rc = maker_read_issuer(&maker, issuer, err);
    if (rc == 0) {
        rc = maker_draw(&maker);
        mbedtls_x509write_crt_set_subject_key(&maker.crt, &maker.key);
        mbedtls_x509write_crt_set_issuer_key(&maker.crt, issuer ? &maker.issuer_key : &maker.key);
        if (rc == 0)
            rc = maker_set_names(&maker, request, issuer);
        if (rc == 0)
            rc = maker_describe(&maker, request);
        if (rc == 0)
            rc = maker_print(&maker, out);
        if (rc != 0)
            rc = maker_fail(rc, "make a certificate", err);
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

/* The file name, within DIR/ca, of the CA that signs the certificates of each role. */
static const char *const authority_files[BUNDLE_ROLES] = {
    [BUNDLE_COORDINATOR] = "server",
    [BUNDLE_WORKER] = "worker",
    [BUNDLE_USER] = "user",
    [BUNDLE_ADMIN] = "admin",
};

static int authority_folder(const char *path, struct error *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    return error_set(err, -errno, "make %s: %s", path, strerror(errno));
}

/* Write the text to DIR/FOLDER/NAME. */
static int authority_put(const char *directory, const char *folder, const char *name,
                         const char *text, struct error *err)
{
    char *path = xasprintf("%s/%s/%s", directory, folder, name);
    int rc = secret_write(path, text, err);
    free(path);
    return rc;
}

static int authority_put_certificate(const char *directory, const char *folder, const char *name,
                                     const struct certificate *certificate, struct error *err)
{
    char file[32];
    snprintf(file, sizeof file, "%s.key", name);
    int rc = authority_put(directory, folder, file, certificate->key, err);
    snprintf(file, sizeof file, "%s.crt", name);
    return rc < 0 ? rc : authority_put(directory, folder, file, certificate->text, err);
}

static int authority_check_hosts(const char *const *hosts, struct error *err)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-";
    size_t count = 0;
    for (; hosts[count]; count++)
        if (!hosts[count][0] || hosts[count][strspn(hosts[count], letters)] ||
            strlen(hosts[count]) > 253)
            return error_set(err, -EINVAL,
                             "'%s' is no host: write a name or an address, as in "
                             "head.example.org or 10.0.0.5",
                             hosts[count]);
    if (count == 0 || count > HOSTS_MAX)
        return error_set(err, -EINVAL, "a coordinator is called by 1 to %d hosts, not %zu",
                         HOSTS_MAX, count);
    return 0;
}

static int authority_make(const struct authority_options *options, enum bundle_role role,
                          struct certificate *out, struct error *err)
{
    char name[64];
    snprintf(name, sizeof name, "Gimbal %s authority", authority_files[role]);
    struct certificate_request request = {
        .use = CERTIFICATE_AUTHORITY,
        .name = name,
        .not_before_s = options->now_s - EARLIER_S,
        .not_after_s = options->now_s + (int64_t)AUTHORITY_DAYS * DAY_S,
    };
    return certificate_make(&request, NULL, out, err);
}

/* Write the bundle of a role: its certificate and key, and the CAs that it trusts. */
static int authority_bundle(const struct authority_options *options, enum bundle_role role,
                            const struct certificate *authorities, struct error *err)
{
    const char *folder = bundle_role_name(role);
    char *path = xasprintf("%s/%s", options->directory, folder);
    struct certificate leaf = {0};
    struct certificate_request request = {
        .use = role == BUNDLE_COORDINATOR ? CERTIFICATE_SERVER : CERTIFICATE_CLIENT,
        .name = folder,
        .unit = folder,
        .hosts = role == BUNDLE_COORDINATOR ? options->hosts : NULL,
        .not_before_s = options->now_s - EARLIER_S,
        .not_after_s = options->now_s + (int64_t)options->days * DAY_S,
    };
    int rc = authority_folder(path, err);
    if (rc == 0)
        rc = certificate_make(&request, &authorities[role], &leaf, err);
    if (rc == 0)
        rc = authority_put_certificate(options->directory, folder, "tls", &leaf, err);
    if (rc == 0)
        rc = authority_put(options->directory, folder, "ca.crt",
                           authorities[BUNDLE_COORDINATOR].text, err);
    for (unsigned client = BUNDLE_WORKER;
         rc == 0 && role == BUNDLE_COORDINATOR && client < BUNDLE_ROLES; client++) {
        char name[32];
        snprintf(name, sizeof name, "%s-ca.crt", authority_files[client]);
        rc = authority_put(options->directory, folder, name, authorities[client].text, err);
    }
    certificate_finish(&leaf);
    free(path);
    return rc;
}

static int authority_bundles(const struct authority_options *options,
                             const struct certificate *authorities, struct error *err)
{
    int rc = 0;
    for (unsigned role = 0; rc == 0 && role < BUNDLE_ROLES; role++)
        rc = authority_bundle(options, (enum bundle_role)role, authorities, err);
    return rc;
}

/* An existing cluster must not be overwritten: its nodes could no longer connect. */
static int authority_check_empty(const char *directory, struct error *err)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i <= BUNDLE_ROLES; i++) {
        const char *folder = i < BUNDLE_ROLES ? bundle_role_name((enum bundle_role)i) : "ca";
        char *path = xasprintf("%s/%s", directory, folder);
        if (access(path, F_OK) == 0)
            rc = error_set(err, -EEXIST,
                           "%s is there already: name another folder, or let --renew issue new "
                           "certificates from the authorities of this one",
                           path);
        free(path);
    }
    return rc;
}

static void authority_remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0); /* "." and ".." are refused */
    if (folder)
        closedir(folder);
    rmdir(path);
}

/* Half of a cluster would only stand in the way of the next attempt, and hold keys that nobody
 * needs. All of it is ours: authority_check_empty() saw none of these folders. */
static void authority_remove(const char *directory)
{
    for (unsigned i = 0; i <= BUNDLE_ROLES; i++) {
        const char *folder = i < BUNDLE_ROLES ? bundle_role_name((enum bundle_role)i) : "ca";
        char *path = xasprintf("%s/%s", directory, folder);
        authority_remove_folder(path);
        free(path);
    }
}

/* Write all of it into folders that are not there yet. */
static int authority_write(const struct authority_options *options,
                           const struct certificate *authorities, struct error *err)
{
    char *ca = xasprintf("%s/ca", options->directory);
    int rc = authority_folder(ca, err);
    for (unsigned role = 0; rc == 0 && role < BUNDLE_ROLES; role++)
        rc = authority_put_certificate(options->directory, "ca", authority_files[role],
                                       &authorities[role], err);
    if (rc == 0)
        rc = authority_bundles(options, authorities, err);
    if (rc < 0)
        authority_remove(options->directory);
    free(ca);
    return rc;
}

static void authority_finish(struct certificate *authorities)
{
    for (unsigned role = 0; role < BUNDLE_ROLES; role++)
        certificate_finish(&authorities[role]);
}

int authority_create(const struct authority_options *options, struct error *err)
{
    struct certificate authorities[BUNDLE_ROLES] = {0};
    int rc = authority_check_hosts(options->hosts, err);
    if (rc == 0)
        rc = authority_check_empty(options->directory, err);
    for (unsigned role = 0; rc == 0 && role < BUNDLE_ROLES; role++)
        rc = authority_make(options, (enum bundle_role)role, &authorities[role], err);
    if (rc == 0)
        rc = authority_folder(options->directory, err);
    if (rc == 0)
        rc = authority_write(options, authorities, err);
    authority_finish(authorities);
    return rc;
}

static int authority_load(const struct authority_options *options, enum bundle_role role,
                          struct certificate *out, struct error *err)
{
    struct certificate_facts facts;
    char *text = xasprintf("%s/ca/%s.crt", options->directory, authority_files[role]);
    char *key = xasprintf("%s/ca/%s.key", options->directory, authority_files[role]);
    int rc = secret_read_public(text, &out->text, err);
    if (rc == 0)
        rc = secret_read(key, &out->key, err);
    if (rc == 0 && ((rc = certificate_read(out->text, &facts, err)) < 0 ||
                    (rc = certificate_check_time(&facts, options->now_s, err)) < 0))
        error_prefix(err, rc, "%s", text);
    if (rc == 0 && (rc = certificate_check_key(out->text, out->key, err)) < 0)
        error_prefix(err, rc, "%s", key);
    if (rc == 0 && options->now_s + (int64_t)options->days * DAY_S > facts.not_after_s)
        rc = error_set(err, -EINVAL,
                       "%s itself is not valid for %u days more: choose fewer --days, or make a "
                       "new cluster",
                       text, options->days);
    free(key);
    free(text);
    return rc;
}

/* Read the hosts of the coordinator's present certificate. */
static int authority_load_hosts(const struct authority_options *options, char ***out,
                                struct error *err)
{
    char *path = xasprintf("%s/coordinator/tls.crt", options->directory), *text;
    int rc = secret_read_public(path, &text, err);
    if (rc == 0) {
        rc = certificate_read_hosts(text, out, err);
        if (rc < 0)
            error_prefix(err, rc, "%s", path);
        free(text);
    }
    free(path);
    return rc;
}

int authority_renew(const struct authority_options *options, struct error *err)
{
    struct certificate authorities[BUNDLE_ROLES] = {0};
    struct authority_options renewed = *options;
    char **hosts = NULL;
    int rc = 0;
    for (unsigned role = 0; rc == 0 && role < BUNDLE_ROLES; role++)
        rc = authority_load(options, (enum bundle_role)role, &authorities[role], err);
    if (rc == 0 && !options->hosts) {
        rc = authority_load_hosts(options, &hosts, err);
        renewed.hosts = (const char *const *)hosts;
    }
    if (rc == 0)
        rc = authority_check_hosts(renewed.hosts, err);
    if (rc == 0)
        rc = authority_bundles(&renewed, authorities, err);
    for (size_t i = 0; hosts && hosts[i]; i++)
        free(hosts[i]);
    free(hosts);
    authority_finish(authorities);
    return rc;
}
