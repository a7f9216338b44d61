/* identity.c - two arrays, searched linearly: a thousand nodes make some thousand calls per second,
 * and comparing a thousand short names takes microseconds. */
#include "coordinator/identity/identity.h"

#include "common/base/memory.h"
#include "coordinator/identity/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

struct identity_token *identity_find_token(const struct identity *identity, const char *id)
{
    for (size_t i = 0; i < identity->token_count; i++)
        if (strcmp(identity->tokens[i].id, id) == 0)
            return &identity->tokens[i];
    return NULL;
}

struct identity_credential *identity_find_credential(const struct identity *identity,
                                                     enum identity_role role, const char *name)
{
    for (size_t i = 0; i < identity->credential_count; i++)
        if (identity->credentials[i].role == role &&
            strcmp(identity->credentials[i].name, name) == 0)
            return &identity->credentials[i];
    return NULL;
}

struct identity_token *identity_add_token(struct identity *identity)
{
    identity->tokens = grow(identity->tokens, identity->token_count, &identity->token_capacity,
                            sizeof *identity->tokens);
    return &identity->tokens[identity->token_count++];
}

struct identity_credential *identity_add_credential(struct identity *identity)
{
    identity->credentials = grow(identity->credentials, identity->credential_count,
                                 &identity->credential_capacity, sizeof *identity->credentials);
    return &identity->credentials[identity->credential_count++];
}

void identity_restore_token(struct identity *identity, const struct identity_token *token)
{
    struct identity_token *at = identity_find_token(identity, token->id);
    *(at ? at : identity_add_token(identity)) = *token;
}

void identity_restore_credential(struct identity *identity,
                                 const struct identity_credential *credential)
{
    struct identity_credential *at =
        identity_find_credential(identity, credential->role, credential->name);
    *(at ? at : identity_add_credential(identity)) = *credential;
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
