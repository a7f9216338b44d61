/* tokens.c - join tokens: issuing, registering those agreed upon beforehand, and checking them. */
#include "common/hardware/hardware.h"
#include "coordinator/identity/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ID_BYTES 8

static int check_grant(const struct identity *identity, const struct identity_grant *grant,
                       struct error *err)
{
    if (grant->name[0] && !hardware_name_valid(grant->name))
        return error_set(err, -EINVAL,
                         "'%.64s' is no name: 1 to %d letters, digits, '.', '-' or '_', a letter "
                         "or digit first",
                         grant->name, IDENTITY_NAME_SIZE - 1);
    if (grant->ttl_ms == 0 || grant->ttl_ms > IDENTITY_TTL_MS_MAX)
        return error_set(err, -EINVAL, "a token lasts for at most 31 days, and not for no time");
    if (grant->uses == 0 || grant->uses > IDENTITY_USES_MAX)
        return error_set(err, -EINVAL, "a token has 1 to %u uses", IDENTITY_USES_MAX);
    if (grant->name[0] && grant->uses > 1)
        return error_set(err, -EINVAL, "a token for one name has one use");
    if (identity->token_count >= IDENTITY_COUNT_MAX)
        return error_set(err, -ENOSPC, "there are %u tokens: no more are issued",
                         IDENTITY_COUNT_MAX);
    return 0;
}

static struct identity_token *grant_token(struct identity *identity,
                                          const struct identity_grant *grant, uint64_t now_ms,
                                          const char *id, const char *secret)
{
    struct identity_token *token = identity_add_token(identity);
    *token = (struct identity_token){.role = grant->role,
                                     .issued_ms = now_ms,
                                     .expires_ms = now_ms + grant->ttl_ms,
                                     .uses_left = grant->uses};
    snprintf(token->id, sizeof token->id, "%s", id);
    snprintf(token->name, sizeof token->name, "%s", grant->name);
    secret_hash(secret, token->hash);
    return token;
}

int identity_issue(struct identity *identity, const struct identity_grant *grant, uint64_t now_ms,
                   const uint8_t random[IDENTITY_RANDOM_BYTES], char text[IDENTITY_TOKEN_SIZE],
                   const struct identity_token **out, struct error *err)
{
    char id[IDENTITY_ID_SIZE], secret[IDENTITY_SECRET_SIZE];
    int rc = check_grant(identity, grant, err);
    if (rc < 0)
        return rc;
    secret_print(id, random, ID_BYTES);
    secret_print(secret, random + ID_BYTES, SECRET_BYTES);
    *out = grant_token(identity, grant, now_ms, id, secret);
    snprintf(text, IDENTITY_TOKEN_SIZE, "%s.%s", id, secret);
    explicit_bzero(secret, sizeof secret);
    return 0;
}

/* Split "ID.SECRET", checking the length of both parts. */
static int split(const char *text, char id[IDENTITY_ID_SIZE], const char **secret,
                 struct error *err)
{
    static const char digits[] = "0123456789abcdef";
    size_t length = strspn(text, digits);
    if (length != IDENTITY_ID_SIZE - 1 || text[length] != '.' ||
        strspn(text + length + 1, digits) != IDENTITY_SECRET_SIZE - 1 ||
        text[IDENTITY_TOKEN_SIZE - 1] != '\0')
        return error_set(err, -EINVAL,
                         "this is no token: one is 16 hexadecimal digits, a '.', and 64 more, as "
                         "'gimbal cluster token' prints it");
    memcpy(id, text, length);
    id[length] = '\0';
    *secret = text + length + 1;
    return 0;
}

int identity_register(struct identity *identity, const struct identity_grant *grant,
                      const char *text, uint64_t now_ms, const struct identity_token **out,
                      struct error *err)
{
    char id[IDENTITY_ID_SIZE];
    const char *secret;
    *out = NULL;
    int rc = split(text, id, &secret, err);
    if (rc < 0)
        return rc;
    if (identity_find_token(identity, id))
        return 0;
    rc = check_grant(identity, grant, err);
    if (rc == 0)
        *out = grant_token(identity, grant, now_ms, id, secret);
    return rc;
}

int identity_find_good(const struct identity *identity, enum identity_role role, const char *name,
                       const char *text, uint64_t now_ms, struct identity_token **out,
                       struct error *err)
{
    char id[IDENTITY_ID_SIZE];
    const char *secret;
    int rc = split(text, id, &secret, err);
    if (rc < 0)
        return error_prefix(err, -EKEYREJECTED, "join");
    struct identity_token *token = identity_find_token(identity, id);
    if (!token || !secret_matches(token->hash, secret) || token->role != role)
        return error_set(err, -EKEYREJECTED, "join: there is no such token for a %s",
                         identity_role_names[role]);
    if (now_ms >= token->expires_ms)
        return error_set(err, -EKEYREJECTED, "join: token %s has expired: have another issued",
                         token->id);
    if (token->uses_left == 0)
        return error_set(err, -EKEYREJECTED, "join: token %s was used up: have another issued",
                         token->id);
    if (token->name[0] && strcmp(token->name, name) != 0)
        return error_set(err, -EACCES, "join: token %s is for %s '%s', not for '%.64s'", token->id,
                         identity_role_names[role], token->name, name);
    *out = token;
    return 0;
}
