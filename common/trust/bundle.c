/* bundle.c - loads a bundle and checks everything in it before use: TLS itself would only report
 * that a handshake failed, and that on the other machine. */
#include "common/trust/bundle.h"

#include "common/base/memory.h"
#include "common/trust/certificate.h"
#include "common/trust/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[BUNDLE_ROLES] = {
    [BUNDLE_COORDINATOR] = "coordinator",
    [BUNDLE_WORKER] = "worker",
    [BUNDLE_USER] = "user",
    [BUNDLE_ADMIN] = "admin",
};

const char *bundle_role_name(enum bundle_role role)
{
    return names[role];
}

/* Read a certificate of the folder into *out and check its dates. */
static int load_certificate(const struct bundle *bundle, const char *name, int64_t now_s,
                            char **out, struct certificate_facts *facts, struct error *err)
{
    char *path = xasprintf("%s/%s", bundle->directory, name);
    int rc = secret_read_public(path, out, err);
    if (rc == 0) {
        rc = certificate_read(*out, facts, err);
        if (rc == 0)
            rc = certificate_check_time(facts, now_s, err);
        if (rc < 0)
            error_prefix(err, rc, "%s", path);
    }
    free(path);
    return rc;
}

static int load_key(struct bundle *bundle, struct error *err)
{
    char *path = xasprintf("%s/tls.key", bundle->directory);
    int rc = secret_read(path, &bundle->key, err);
    if (rc == 0) {
        rc = certificate_check_key(bundle->certificate, bundle->key, err);
        if (rc < 0)
            error_prefix(err, rc, "%s", path);
    }
    free(path);
    return rc;
}

/* Set the role from the organizational unit or, as not every tool writes one, the common name. */
static int find_role(struct bundle *bundle, const struct certificate_facts *facts,
                     struct error *err)
{
    const char *word = facts->unit[0] ? facts->unit : facts->name;
    for (unsigned role = 0; role < BUNDLE_ROLES; role++) {
        if (strcmp(word, names[role]) != 0)
            continue;
        bundle->role = (enum bundle_role)role;
        return 0;
    }
    return error_set(err, -EINVAL,
                     "%s/tls.crt is for '%s': its organizational unit (OU), or without one its "
                     "common name, has to say coordinator, worker, user or admin",
                     bundle->directory, word);
}

static int check_role(const struct bundle *bundle, unsigned roles, struct error *err)
{
    char wanted[64] = "";
    if (roles & 1u << bundle->role)
        return 0;
    for (unsigned role = 0; role < BUNDLE_ROLES; role++)
        if (roles & 1u << role)
            snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%s%s",
                     wanted[0] ? " or " : "", names[role]);
    return error_set(err, -EINVAL, "%s is the bundle of role %s; wanted is that of %s",
                     bundle->directory, names[bundle->role], wanted);
}

static int bundle_load_texts(struct bundle *bundle, unsigned roles, int64_t now_s,
                             struct error *err)
{
    struct certificate_facts facts;
    int rc = load_certificate(bundle, "tls.crt", now_s, &bundle->certificate, &facts, err);
    if (rc == 0)
        rc = find_role(bundle, &facts, err);
    if (rc == 0)
        rc = check_role(bundle, roles, err);
    if (rc == 0)
        rc = load_key(bundle, err);
    if (rc == 0)
        rc = load_certificate(bundle, "ca.crt", now_s, &bundle->authority, &facts, err);
    for (unsigned role = BUNDLE_WORKER;
         rc == 0 && bundle->role == BUNDLE_COORDINATOR && role < BUNDLE_ROLES; role++) {
        char name[32];
        snprintf(name, sizeof name, "%s-ca.crt", names[role]);
        rc = load_certificate(bundle, name, now_s, &bundle->clients[role], &facts, err);
    }
    return rc;
}

int bundle_load(const char *directory, unsigned roles, int64_t now_s, struct bundle **out,
                struct error *err)
{
    struct bundle *bundle = xcalloc(1, sizeof *bundle);
    bundle->directory = xstrdup(directory);
    if (bundle_load_texts(bundle, roles, now_s, err) < 0) {
        bundle_destroy(bundle);
        return error_prefix(err, -EINVAL, "tls"); /* whatever it is, the setting is wrong */
    }
    *out = bundle;
    return 0;
}

void bundle_destroy(struct bundle *bundle)
{
    if (!bundle)
        return;
    free(bundle->directory);
    free(bundle->certificate);
    secret_free(bundle->key);
    free(bundle->authority);
    for (unsigned role = 0; role < BUNDLE_ROLES; role++)
        free(bundle->clients[role]);
    free(bundle);
}
