/* identity.c - two arrays, searched linearly: a thousand nodes make some thousand calls per second,
 * and comparing a thousand short names takes microseconds.
 *
 * Of secrets only hashes are kept. A secret has 256 random bits, so a single round of SHA-256
 * protects it as well as a slow hash would a password. Comparing takes the same time whatever the
 * result. */
#include "coordinator/identity/identity.h"

#include <errno.h>
#include <mbedtls/constant_time.h>
#include <mbedtls/sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/hardware/hardware.h"
#include "common/trust/secret.h"

struct identity {
    struct identity_token *tokens;
    size_t token_count, token_capacity;
    struct identity_credential *credentials;
    size_t credential_count, credential_capacity;
};

#define SECRET_BYTES 32
#define ID_BYTES 8

const char *const identity_role_names[] = {
    [IDENTITY_WORKER] = "worker", [IDENTITY_USER] = "user", NULL};

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

static struct identity_token *token_find(const struct identity *identity, const char *id)
{
    for (size_t i = 0; i < identity->token_count; i++)
        if (strcmp(identity->tokens[i].id, id) == 0)
            return &identity->tokens[i];
    return NULL;
}

static struct identity_credential *credential_find(const struct identity *identity,
                                                   enum identity_role role, const char *name)
{
    for (size_t i = 0; i < identity->credential_count; i++)
        if (identity->credentials[i].role == role &&
            strcmp(identity->credentials[i].name, name) == 0)
            return &identity->credentials[i];
    return NULL;
}

static struct identity_token *token_add(struct identity *identity)
{
    identity->tokens = grow(identity->tokens, identity->token_count, &identity->token_capacity,
                            sizeof *identity->tokens);
    return &identity->tokens[identity->token_count++];
}

static struct identity_credential *credential_add(struct identity *identity)
{
    identity->credentials = grow(identity->credentials, identity->credential_count,
                                 &identity->credential_capacity, sizeof *identity->credentials);
    return &identity->credentials[identity->credential_count++];
}

void identity_restore_token(struct identity *identity, const struct identity_token *token)
{
    struct identity_token *at = token_find(identity, token->id);
    *(at ? at : token_add(identity)) = *token;
}

void identity_restore_credential(struct identity *identity,
                                 const struct identity_credential *credential)
{
    struct identity_credential *at = credential_find(identity, credential->role, credential->name);
    *(at ? at : credential_add(identity)) = *credential;
}

/* Print 2 * count hexadecimal digits and a NUL. */
static void token_print_hex(char *out, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static void token_hash(const char *secret, uint8_t out[IDENTITY_HASH_BYTES])
{
    mbedtls_sha256_ret((const unsigned char *)secret, strlen(secret), out, 0);
}

/* Takes the same time whatever the result. */
static bool token_matches(const uint8_t stored[IDENTITY_HASH_BYTES], const char *secret)
{
    uint8_t given[IDENTITY_HASH_BYTES];
    token_hash(secret, given);
    return mbedtls_ct_memcmp(stored, given, sizeof given) == 0;
}

static int token_check_grant(const struct identity *identity, const struct identity_grant *grant,
                             struct error *err)
{
    if (grant->name[0] && !text_is_name(grant->name))
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

static struct identity_token *token_grant(struct identity *identity,
                                          const struct identity_grant *grant, uint64_t now_ms,
                                          const char *id, const char *secret)
{
    struct identity_token *token = token_add(identity);
    *token = (struct identity_token){.role = grant->role,
                                     .issued_ms = now_ms,
                                     .expires_ms = now_ms + grant->ttl_ms,
                                     .uses_left = grant->uses};
    snprintf(token->id, sizeof token->id, "%s", id);
    snprintf(token->name, sizeof token->name, "%s", grant->name);
    token_hash(secret, token->hash);
    return token;
}

int identity_issue(struct identity *identity, const struct identity_grant *grant, uint64_t now_ms,
                   const uint8_t random[IDENTITY_RANDOM_BYTES], char text[IDENTITY_TOKEN_SIZE],
                   const struct identity_token **out, struct error *err)
{
    char id[IDENTITY_ID_SIZE], secret[IDENTITY_SECRET_SIZE];
    int rc = token_check_grant(identity, grant, err);
    if (rc < 0)
        return rc;
    token_print_hex(id, random, ID_BYTES);
    token_print_hex(secret, random + ID_BYTES, SECRET_BYTES);
    *out = token_grant(identity, grant, now_ms, id, secret);
    snprintf(text, IDENTITY_TOKEN_SIZE, "%s.%s", id, secret);
    explicit_bzero(secret, sizeof secret);
    return 0;
}

/* Split "ID.SECRET", checking the length of both parts. */
static int token_split(const char *text, char id[IDENTITY_ID_SIZE], const char **secret,
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
    int rc = token_split(text, id, &secret, err);
    if (rc < 0)
        return rc;
    if (token_find(identity, id))
        return 0;
    rc = token_check_grant(identity, grant, err);
    if (rc == 0)
        *out = token_grant(identity, grant, now_ms, id, secret);
    return rc;
}

/* One line of the file: role, token, validity, uses. */
static int agreed_register_line(struct identity *identity, const char *line,
                                const struct identity_agreed *tokens, struct error *err)
{
    char role[16], token[IDENTITY_TOKEN_SIZE], ttl[32], rest;
    struct identity_grant grant = {.name = ""};
    const struct identity_token *added = NULL;
    double ttl_s = 0;
    if (sscanf(line, "%15s %81s %31s %u %c", role, token, ttl, &grant.uses, &rest) != 4)
        return error_set(err, -EINVAL,
                         "it wants four words: worker or user, ID.SECRET, how long it lasts, and "
                         "its uses");
    int rc = identity_role_parse(role, &grant.role, err);
    if (rc == 0)
        rc = units_parse(UNITS_SECONDS, ttl, &ttl_s, err);
    if (rc == 0 && (ttl_s <= 0 || ttl_s * 1000 > (double)IDENTITY_TTL_MS_MAX))
        rc = error_set(err, -EINVAL, "a token lasts for at most 744h, and not for no time");
    grant.ttl_ms = (uint64_t)(ttl_s * 1000);
    if (rc == 0)
        rc = identity_register(identity, &grant, token, tokens->now_ms, &added, err);
    if (added && tokens->added_cb)
        tokens->added_cb(tokens->data, added);
    explicit_bzero(token, sizeof token);
    return rc;
}

int identity_register_agreed(struct identity *identity, const char *path,
                             const struct identity_agreed *tokens, struct error *err)
{
    char *text;
    unsigned number = 0;
    int rc = secret_read(path, &text, err);
    if (rc < 0)
        return error_prefix(err, -EINVAL, "join_tokens");
    for (char *rest = text, *line; rc == 0 && (line = strsep(&rest, "\n"));) {
        number++;
        line += strspn(line, " \t");
        if (*line && *line != '#')
            rc = agreed_register_line(identity, line, tokens, err);
    }
    secret_free(text);
    return rc < 0 ? error_prefix(err, rc, "join_tokens: %s:%u", path, number) : 0;
}

int identity_check_agreed(const char *path, struct error *err)
{
    static const struct identity_agreed nobody = {.now_ms = 0};
    struct identity *identity = identity_create();
    int rc = identity_register_agreed(identity, path, &nobody, err);
    identity_destroy(identity);
    return rc;
}

/* Find the token with this text, if it may be used for this name now. -EKEYREJECTED, -EACCES. */
static int token_find_good(const struct identity *identity, enum identity_role role,
                           const char *name, const char *text, uint64_t now_ms,
                           struct identity_token **out, struct error *err)
{
    char id[IDENTITY_ID_SIZE];
    const char *secret;
    int rc = token_split(text, id, &secret, err);
    if (rc < 0)
        return error_prefix(err, -EKEYREJECTED, "join");
    struct identity_token *token = token_find(identity, id);
    if (!token || !token_matches(token->hash, secret) || token->role != role)
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

/* Whether the name may get a credential by this token. A name that has or had one needs a token
 * made for it, or whoever holds any token could take it over. A revoked secret is never accepted
 * again. */
static int credential_check_name(const struct identity_credential *older,
                                 const struct identity_token *token, const char *secret,
                                 struct error *err)
{
    const char *role = identity_role_names[token->role];
    if (older && older->revoked_ms && token_matches(older->hash, secret))
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

static bool credential_is_secret(const char *text)
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
    if (!text_is_name(name))
        return error_set(err, -EINVAL, "join: '%.64s' is no name for a %s", name,
                         identity_role_names[role]);
    if (!credential_is_secret(secret))
        return error_set(err, -EINVAL,
                         "join: what is to be the credential of %s '%s' is not 64 hexadecimal "
                         "digits",
                         identity_role_names[role], name);
    if (identity_admit(identity, role, name, secret, err) == 0)
        return 0;
    int rc = token_find_good(identity, role, name, text, now_ms, &token, err);
    if (rc < 0)
        return rc;
    struct identity_credential *credential = credential_find(identity, role, name);
    rc = credential_check_name(credential, token, secret, err);
    if (rc < 0)
        return rc;
    if (!credential && identity->credential_count >= IDENTITY_COUNT_MAX)
        return error_set(err, -ENOSPC, "join: %u have joined: no more may", IDENTITY_COUNT_MAX);
    if (!credential)
        credential = credential_add(identity);
    *credential = (struct identity_credential){.role = role, .issued_ms = now_ms};
    snprintf(credential->name, sizeof credential->name, "%s", name);
    token_hash(secret, credential->hash);
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
    const struct identity_credential *credential = credential_find(identity, role, name);
    if (!credential || !token_matches(credential->hash, secret))
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
    struct identity_credential *credential = credential_find(identity, role, name);
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
