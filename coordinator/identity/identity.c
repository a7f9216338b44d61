/* identity.c - two arrays, searched from end to end: a thousand nodes call some thousand times a
 * second, and comparing a thousand short names takes microseconds.
 *
 * A secret has 256 random bits, so one round of SHA-256 keeps it as well as any slow hash would
 * a password; and comparing takes as long whatever the outcome. */
#include "coordinator/identity/identity.h"

#include "common/base/memory.h"
#include "common/hardware/hardware.h"

#include <errno.h>
#include <mbedtls/constant_time.h>
#include <mbedtls/sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_BYTES 8
#define SECRET_BYTES 32

const char *const identity_role_names[] = {
    [IDENTITY_WORKER] = "worker", [IDENTITY_USER] = "user", NULL};

struct identity {
    struct identity_token *tokens;
    size_t token_count, token_capacity;
    struct identity_credential *credentials;
    size_t credential_count, credential_capacity;
};

int identity_role_parse(const char *text, enum identity_role *out, struct error *err)
{
    for (unsigned i = 0; i < IDENTITY_ROLES; i++) {
        if (strcmp(text, identity_role_names[i]) != 0)
            continue;
        *out = (enum identity_role)i;
        return 0;
    }
    return error_set(err, -EINVAL, "'%.64s' is no role to join as: write worker or user", text);
}

struct identity *identity_create(void)
{
    return xcalloc(1, sizeof(struct identity));
}

void identity_destroy(struct identity *identity)
{
    if (!identity)
        return;
    free(identity->tokens);
    free(identity->credentials);
    free(identity);
}

static void hash(const char *secret, uint8_t out[IDENTITY_HASH_BYTES])
{
    mbedtls_sha256_ret((const unsigned char *)secret, strlen(secret), out, 0);
}

static bool matches(const uint8_t stored[IDENTITY_HASH_BYTES], const char *secret)
{
    uint8_t given[IDENTITY_HASH_BYTES];
    hash(secret, given);
    return mbedtls_ct_memcmp(stored, given, sizeof given) == 0;
}

static void print_hex(char *out, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static struct identity_token *find_token(const struct identity *identity, const char *id)
{
    for (size_t i = 0; i < identity->token_count; i++)
        if (strcmp(identity->tokens[i].id, id) == 0)
            return &identity->tokens[i];
    return NULL;
}

static struct identity_credential *find_credential(const struct identity *identity,
                                                   enum identity_role role, const char *name)
{
    for (size_t i = 0; i < identity->credential_count; i++)
        if (identity->credentials[i].role == role &&
            strcmp(identity->credentials[i].name, name) == 0)
            return &identity->credentials[i];
    return NULL;
}

static struct identity_token *add_token(struct identity *identity)
{
    identity->tokens = grow(identity->tokens, identity->token_count, &identity->token_capacity,
                            sizeof *identity->tokens);
    return &identity->tokens[identity->token_count++];
}

static struct identity_credential *add_credential(struct identity *identity)
{
    identity->credentials = grow(identity->credentials, identity->credential_count,
                                 &identity->credential_capacity, sizeof *identity->credentials);
    return &identity->credentials[identity->credential_count++];
}

void identity_restore_token(struct identity *identity, const struct identity_token *token)
{
    struct identity_token *at = find_token(identity, token->id);
    *(at ? at : add_token(identity)) = *token;
}

void identity_restore_credential(struct identity *identity,
                                 const struct identity_credential *credential)
{
    struct identity_credential *at = find_credential(identity, credential->role, credential->name);
    *(at ? at : add_credential(identity)) = *credential;
}

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
    struct identity_token *token = add_token(identity);
    *token = (struct identity_token){.role = grant->role,
                                     .issued_ms = now_ms,
                                     .expires_ms = now_ms + grant->ttl_ms,
                                     .uses_left = grant->uses};
    snprintf(token->id, sizeof token->id, "%s", id);
    snprintf(token->name, sizeof token->name, "%s", grant->name);
    hash(secret, token->hash);
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
    print_hex(id, random, ID_BYTES);
    print_hex(secret, random + ID_BYTES, SECRET_BYTES);
    *out = grant_token(identity, grant, now_ms, id, secret);
    snprintf(text, IDENTITY_TOKEN_SIZE, "%s.%s", id, secret);
    explicit_bzero(secret, sizeof secret);
    return 0;
}

/* "ID.SECRET", both of the length that they have here. */
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
    if (find_token(identity, id))
        return 0;
    rc = check_grant(identity, grant, err);
    if (rc == 0)
        *out = grant_token(identity, grant, now_ms, id, secret);
    return rc;
}

/* The token of that text, if it is good for this name now. */
static int find_good(const struct identity *identity, enum identity_role role, const char *name,
                     const char *text, uint64_t now_ms, struct identity_token **out,
                     struct error *err)
{
    char id[IDENTITY_ID_SIZE];
    const char *secret;
    int rc = split(text, id, &secret, err);
    if (rc < 0)
        return error_prefix(err, -EKEYREJECTED, "join");
    struct identity_token *token = find_token(identity, id);
    if (!token || !matches(token->hash, secret) || token->role != role)
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

/* May the name get a credential by this token? One that has or had one only by a token that names
 * it: else whoever holds any token could take a name over. */
static int check_name(const struct identity_credential *older, const struct identity_token *token,
                      struct error *err)
{
    const char *role = identity_role_names[token->role];
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

int identity_join(struct identity *identity, enum identity_role role, const char *name,
                  const char *text, uint64_t now_ms, const uint8_t random[IDENTITY_RANDOM_BYTES],
                  struct identity_joined *out, struct error *err)
{
    struct identity_token *token = NULL;
    if (!hardware_name_valid(name))
        return error_set(err, -EINVAL, "join: '%.64s' is no name for a %s", name,
                         identity_role_names[role]);
    int rc = find_good(identity, role, name, text, now_ms, &token, err);
    if (rc < 0)
        return rc;
    struct identity_credential *credential = find_credential(identity, role, name);
    rc = check_name(credential, token, err);
    if (rc < 0)
        return rc;
    if (!credential && identity->credential_count >= IDENTITY_COUNT_MAX)
        return error_set(err, -ENOSPC, "join: %u have joined: no more may", IDENTITY_COUNT_MAX);
    if (!credential)
        credential = add_credential(identity);
    *credential = (struct identity_credential){.role = role, .issued_ms = now_ms};
    snprintf(credential->name, sizeof credential->name, "%s", name);
    token->uses_left--;
    print_hex(out->secret, random, SECRET_BYTES);
    hash(out->secret, credential->hash);
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
    const struct identity_credential *credential = find_credential(identity, role, name);
    if (!credential || !matches(credential->hash, secret))
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
    struct identity_credential *credential = find_credential(identity, role, name);
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

size_t identity_token_count(const struct identity *identity)
{
    return identity->token_count;
}

const struct identity_token *identity_token_at(const struct identity *identity, size_t index)
{
    return &identity->tokens[index];
}

size_t identity_credential_count(const struct identity *identity)
{
    return identity->credential_count;
}

const struct identity_credential *identity_credential_at(const struct identity *identity,
                                                         size_t index)
{
    return &identity->credentials[index];
}
