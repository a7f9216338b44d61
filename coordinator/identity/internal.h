/* internal.h - shared by the files of identity/; not for others. */
#ifndef COORDINATOR_IDENTITY_INTERNAL_H
#define COORDINATOR_IDENTITY_INTERNAL_H

#include "coordinator/identity/identity.h"

struct identity {
    struct identity_token *tokens;
    size_t token_count, token_capacity;
    struct identity_credential *credentials;
    size_t credential_count, credential_capacity;
};

/* identity.c: find lends, NULL if there is none; add lends a new record to be filled in. */
struct identity_token *identity_find_token(const struct identity *identity, const char *id);
struct identity_token *identity_add_token(struct identity *identity);
struct identity_credential *identity_find_credential(const struct identity *identity,
                                                     enum identity_role role, const char *name);
struct identity_credential *identity_add_credential(struct identity *identity);

/* secret.c */
#define SECRET_BYTES 32
/* Print 2 * count hexadecimal digits and a NUL. */
void secret_print(char *out, const uint8_t *bytes, size_t count);
void secret_hash(const char *secret, uint8_t out[IDENTITY_HASH_BYTES]);
/* Takes the same time whatever the result. */
bool secret_matches(const uint8_t stored[IDENTITY_HASH_BYTES], const char *secret);

/* tokens.c: find the token with this text, if it may be used for this name now. -EKEYREJECTED,
 * -EACCES. */
int identity_find_good(const struct identity *identity, enum identity_role role, const char *name,
                       const char *text, uint64_t now_ms, struct identity_token **out,
                       struct error *err);

#endif
