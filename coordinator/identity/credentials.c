/* credentials.c - what a token is exchanged for: joining, being admitted, being revoked. */
#include "common/hardware/hardware.h"
#include "coordinator/identity/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Whether the name may get a credential by this token. A name that has or had one needs a token
 * made for it, or whoever holds any token could take it over. A revoked secret is never accepted
 * again. */
static int check_name(const struct identity_credential *older, const struct identity_token *token,
                      const char *secret, struct error *err)
{
    const char *role = identity_role_names[token->role];
    if (older && older->revoked_ms && secret_matches(older->hash, secret))
        return error_set(err, -EACCES,
                         "join: what is to be the credential of %s '%s' was revoked: remove its "
                         "file, and the one '.offered' beside it",
                         role, older->name);
    if (!older || token->name[0])
        return 0;
    if (older->revoked_ms)
        return error_set(err, -EACCES,
                         "join: %s '%s' was revoked: it comes back only by a token for it ('gimbal "
                         "cluster token %s --name %s')",
                         role, older->name, role, older->name);
    return error_set(err, -EEXIST,
                     "join: %s '%s' has joined already: to join again it needs a token for it "
                     "('gimbal cluster token %s --name %s')",
                     role, older->name, role, older->name);
}

static bool is_secret(const char *text)
{
    size_t digits = strspn(text, "0123456789abcdef");
    return digits == IDENTITY_SECRET_SIZE - 1 && text[digits] == '\0';
}

int identity_join(struct identity *identity, enum identity_role role, const char *name,
                  const char *text, const char *secret, uint64_t now_ms,
                  struct identity_joined *out, struct error *err)
{
    struct identity_token *token = NULL;
    *out = (struct identity_joined){NULL, NULL};
    if (!hardware_name_valid(name))
        return error_set(err, -EINVAL, "join: '%.64s' is no name for a %s", name,
                         identity_role_names[role]);
    if (!is_secret(secret))
        return error_set(err, -EINVAL,
                         "join: what is to be the credential of %s '%s' is not 64 hexadecimal "
                         "digits",
                         identity_role_names[role], name);
    if (identity_admit(identity, role, name, secret, err) == 0)
        return 0;
    int rc = identity_find_good(identity, role, name, text, now_ms, &token, err);
    if (rc < 0)
        return rc;
    struct identity_credential *credential = identity_find_credential(identity, role, name);
    rc = check_name(credential, token, secret, err);
    if (rc < 0)
        return rc;
    if (!credential && identity->credential_count >= IDENTITY_COUNT_MAX)
        return error_set(err, -ENOSPC, "join: %u have joined: no more may", IDENTITY_COUNT_MAX);
    if (!credential)
        credential = identity_add_credential(identity);
    *credential = (struct identity_credential){.role = role, .issued_ms = now_ms};
    snprintf(credential->name, sizeof credential->name, "%s", name);
    secret_hash(secret, credential->hash);
    token->uses_left--;
    out->token = token;
    out->credential = credential;
    return 0;
}

int identity_admit(const struct identity *identity, enum identity_role role, const char *name,
                   const char *secret, struct error *err)
{
    const char *word = identity_role_names[role];
    if (!secret[0])
        return error_set(err, -EKEYREJECTED,
                         "%s '%.64s' shows no credential: it has to join first, with a token", word,
                         name);
    const struct identity_credential *credential = identity_find_credential(identity, role, name);
    if (!credential || !secret_matches(credential->hash, secret))
        return error_set(err, -EKEYREJECTED, "the credential shown is not that of %s '%.64s'", word,
                         name);
    if (credential->revoked_ms)
        return error_set(err, -EACCES, "%s '%.64s' was revoked", word, name);
    return 0;
}

int identity_revoke(struct identity *identity, enum identity_role role, const char *name,
                    uint64_t now_ms, identity_token_cb changed, void *data,
                    const struct identity_credential **out, struct error *err)
{
    struct identity_credential *credential = identity_find_credential(identity, role, name);
    if (!credential)
        return error_set(err, -ENOENT, "there is no %s '%.64s' that has joined",
                         identity_role_names[role], name);
    if (!credential->revoked_ms)
        credential->revoked_ms = now_ms;
    for (size_t i = 0; i < identity->token_count; i++) {
        struct identity_token *token = &identity->tokens[i];
        if (token->role != role || strcmp(token->name, name) != 0 || token->uses_left == 0)
            continue;
        token->uses_left = 0;
        changed(data, token);
    }
    *out = credential;
    return 0;
}
