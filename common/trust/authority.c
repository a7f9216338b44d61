/* authority.c - writes the CAs and bundles of a cluster as files.
 *
 * A renewal issues the bundles anew under the same CAs, so that processes with an older bundle and
 * those with a newer one still trust each other. */
#include "common/trust/authority.h"

#include "common/base/memory.h"
#include "common/trust/bundle.h"
#include "common/trust/certificate.h"
#include "common/trust/secret.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY_S 86400
/* Certificates are backdated by this, so that machines whose clocks are slow accept them too. */
#define EARLIER_S 3600
#define HOSTS_MAX 32

/* The file name, within DIR/ca, of the CA that signs the certificates of each role. */
static const char *const files[BUNDLE_ROLES] = {
    [BUNDLE_COORDINATOR] = "server",
    [BUNDLE_WORKER] = "worker",
    [BUNDLE_USER] = "user",
    [BUNDLE_ADMIN] = "admin",
};

static int make_folder(const char *path, struct error *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    return error_set(err, -errno, "make %s: %s", path, strerror(errno));
}

/* Write the text to DIR/FOLDER/NAME. */
static int put(const char *directory, const char *folder, const char *name, const char *text,
               struct error *err)
{
    char *path = xasprintf("%s/%s/%s", directory, folder, name);
    int rc = secret_write(path, text, err);
    free(path);
    return rc;
}

static int put_certificate(const char *directory, const char *folder, const char *name,
                           const struct certificate *certificate, struct error *err)
{
    char file[32];
    snprintf(file, sizeof file, "%s.key", name);
    int rc = put(directory, folder, file, certificate->key, err);
    snprintf(file, sizeof file, "%s.crt", name);
    return rc < 0 ? rc : put(directory, folder, file, certificate->text, err);
}

static int check_hosts(const char *const *hosts, struct error *err)
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

static int make_authority(const struct authority_options *options, enum bundle_role role,
                          struct certificate *out, struct error *err)
{
    char name[64];
    snprintf(name, sizeof name, "Gimbal %s authority", files[role]);
    struct certificate_request request = {
        .use = CERTIFICATE_AUTHORITY,
        .name = name,
        .not_before_s = options->now_s - EARLIER_S,
        .not_after_s = options->now_s + (int64_t)AUTHORITY_DAYS * DAY_S,
    };
    return certificate_make(&request, NULL, out, err);
}

/* Write the bundle of a role: its certificate and key, and the CAs that it trusts. */
static int make_bundle(const struct authority_options *options, enum bundle_role role,
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
    int rc = make_folder(path, err);
    if (rc == 0)
        rc = certificate_make(&request, &authorities[role], &leaf, err);
    if (rc == 0)
        rc = put_certificate(options->directory, folder, "tls", &leaf, err);
    if (rc == 0)
        rc = put(options->directory, folder, "ca.crt", authorities[BUNDLE_COORDINATOR].text, err);
    for (unsigned client = BUNDLE_WORKER;
         rc == 0 && role == BUNDLE_COORDINATOR && client < BUNDLE_ROLES; client++) {
        char name[32];
        snprintf(name, sizeof name, "%s-ca.crt", files[client]);
        rc = put(options->directory, folder, name, authorities[client].text, err);
    }
    certificate_finish(&leaf);
    free(path);
    return rc;
}

static int make_bundles(const struct authority_options *options,
                        const struct certificate *authorities, struct error *err)
{
    int rc = 0;
    for (unsigned role = 0; rc == 0 && role < BUNDLE_ROLES; role++)
        rc = make_bundle(options, (enum bundle_role)role, authorities, err);
    return rc;
}

/* An existing cluster must not be overwritten: its nodes could no longer connect. */
static int check_empty(const char *directory, struct error *err)
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

static void remove_folder(const char *path)
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
 * needs. All of it is ours: check_empty() saw none of these folders. */
static void remove_all(const char *directory)
{
    for (unsigned i = 0; i <= BUNDLE_ROLES; i++) {
        const char *folder = i < BUNDLE_ROLES ? bundle_role_name((enum bundle_role)i) : "ca";
        char *path = xasprintf("%s/%s", directory, folder);
        remove_folder(path);
        free(path);
    }
}

/* Write all of it into folders that are not there yet. */
static int write_all(const struct authority_options *options, const struct certificate *authorities,
                     struct error *err)
{
    char *ca = xasprintf("%s/ca", options->directory);
    int rc = make_folder(ca, err);
    for (unsigned role = 0; rc == 0 && role < BUNDLE_ROLES; role++)
        rc = put_certificate(options->directory, "ca", files[role], &authorities[role], err);
    if (rc == 0)
        rc = make_bundles(options, authorities, err);
    if (rc < 0)
        remove_all(options->directory);
    free(ca);
    return rc;
}

static void finish_all(struct certificate *authorities)
{
    for (unsigned role = 0; role < BUNDLE_ROLES; role++)
        certificate_finish(&authorities[role]);
}

int authority_create(const struct authority_options *options, struct error *err)
{
    struct certificate authorities[BUNDLE_ROLES] = {0};
    int rc = check_hosts(options->hosts, err);
    if (rc == 0)
        rc = check_empty(options->directory, err);
    for (unsigned role = 0; rc == 0 && role < BUNDLE_ROLES; role++)
        rc = make_authority(options, (enum bundle_role)role, &authorities[role], err);
    if (rc == 0)
        rc = make_folder(options->directory, err);
    if (rc == 0)
        rc = write_all(options, authorities, err);
    finish_all(authorities);
    return rc;
}

static int load_authority(const struct authority_options *options, enum bundle_role role,
                          struct certificate *out, struct error *err)
{
    struct certificate_facts facts;
    char *text = xasprintf("%s/ca/%s.crt", options->directory, files[role]);
    char *key = xasprintf("%s/ca/%s.key", options->directory, files[role]);
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
static int load_hosts(const struct authority_options *options, char ***out, struct error *err)
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
        rc = load_authority(options, (enum bundle_role)role, &authorities[role], err);
    if (rc == 0 && !options->hosts) {
        rc = load_hosts(options, &hosts, err);
        renewed.hosts = (const char *const *)hosts;
    }
    if (rc == 0)
        rc = check_hosts(renewed.hosts, err);
    if (rc == 0)
        rc = make_bundles(&renewed, authorities, err);
    for (size_t i = 0; hosts && hosts[i]; i++)
        free(hosts[i]);
    free(hosts);
    finish_all(authorities);
    return rc;
}
