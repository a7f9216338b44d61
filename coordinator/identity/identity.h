/* identity.h - who is who inside a role: join tokens, and the credentials they were changed for.
 *
 * A caller's role is what its certificate was good for. Its name it has to prove: by a credential,
 * a random number that it was told once when it joined, and of which only a hash is kept here. To
 * join takes a token, which somebody who may let others in has issued: for one role, perhaps for
 * one name, for some time and some uses.
 *
 * Times are milliseconds of the calendar and random numbers are the caller's: nothing is drawn or
 * read here. Nor is anything written: what a call has changed it hands back as a record, which
 * must be stored before anybody is told. */
#ifndef COORDINATOR_IDENTITY_IDENTITY_H
#define COORDINATOR_IDENTITY_IDENTITY_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDENTITY_NAME_SIZE 64
#define IDENTITY_ID_SIZE 17     /* 64 bits as hexadecimal digits */
#define IDENTITY_SECRET_SIZE 65 /* 256 bits */
#define IDENTITY_TOKEN_SIZE (IDENTITY_ID_SIZE + IDENTITY_SECRET_SIZE) /* "ID.SECRET" */
#define IDENTITY_HASH_BYTES 32                                        /* SHA-256 */
#define IDENTITY_RANDOM_BYTES 40                                      /* what a call may use up */
#define IDENTITY_TTL_MS_MAX (31ull * 24 * 3600 * 1000)
#define IDENTITY_USES_MAX 10000u
#define IDENTITY_COUNT_MAX 100000u /* tokens, and credentials */

enum identity_role { IDENTITY_WORKER, IDENTITY_USER, IDENTITY_ROLES };
extern const char *const identity_role_names[]; /* "worker", "user"; ended by NULL */
/* -EINVAL with the words that there are. */
int identity_role_parse(const char *text, enum identity_role *out, struct error *err);

struct identity_token {
    char id[IDENTITY_ID_SIZE];
    enum identity_role role;
    char name[IDENTITY_NAME_SIZE]; /* "": whoever has not joined yet */
    uint8_t hash[IDENTITY_HASH_BYTES];
    uint64_t issued_ms, expires_ms;
    uint32_t uses_left;
};

struct identity_credential {
    enum identity_role role;
    char name[IDENTITY_NAME_SIZE];
    uint8_t hash[IDENTITY_HASH_BYTES];
    uint64_t issued_ms;
    uint64_t revoked_ms; /* 0: it holds */
};

struct identity;
struct identity *identity_create(void);
/* Accepts NULL. */
void identity_destroy(struct identity *identity);

/* A record as it was stored; copied, in the place of an older one. */
void identity_restore_token(struct identity *identity, const struct identity_token *token);
void identity_restore_credential(struct identity *identity,
                                 const struct identity_credential *credential);

/* What a token is to be good for. */
struct identity_grant {
    enum identity_role role;
    const char *name; /* "": any that has not joined yet */
    uint64_t ttl_ms;
    uint32_t uses;
};

/* A new token: its text, and its record, lent until the next call that is not const.
 * -EINVAL: name, time or uses; -ENOSPC: there are too many. */
int identity_issue(struct identity *identity, const struct identity_grant *grant, uint64_t now_ms,
                   const uint8_t random[IDENTITY_RANDOM_BYTES], char text[IDENTITY_TOKEN_SIZE],
                   const struct identity_token **out, struct error *err);
/* One whose text was agreed upon beforehand. One that is known already stays as it is, with what
 * is left of it, and *out is NULL. -EINVAL also when the text is no token. */
int identity_register(struct identity *identity, const struct identity_grant *grant,
                      const char *text, uint64_t now_ms, const struct identity_token **out,
                      struct error *err);

/* What joining has changed: nothing, and both are NULL, where the credential is that of the name
 * already, for who joins and hears no answer tries again. */
struct identity_joined {
    const struct identity_token *token;
    const struct identity_credential *credential;
};

/* Change a use of the token for a credential of that name: a secret that the caller has drawn, 64
 * hexadecimal digits, of which a hash is kept. -EINVAL: it is no such. -EKEYREJECTED: no such token
 * of this role, or it was used up or has expired. -EACCES: it is for another name, or the name was
 * revoked and the token is not for it. -EEXIST: the name has joined, and the token is not for it.
 */
int identity_join(struct identity *identity, enum identity_role role, const char *name,
                  const char *token, const char *secret, uint64_t now_ms,
                  struct identity_joined *out, struct error *err);

/* Is it who it says it is? -EKEYREJECTED, or -EACCES where it was revoked. */
int identity_admit(const struct identity *identity, enum identity_role role, const char *name,
                   const char *secret, struct error *err);

/* From now on the credential of that name, and any token for that name, is worth nothing. Calls
 * changed(data, token) for each such token. -ENOENT. */
typedef void (*identity_token_cb)(void *data, const struct identity_token *token);
int identity_revoke(struct identity *identity, enum identity_role role, const char *name,
                    uint64_t now_ms, identity_token_cb changed, void *data,
                    const struct identity_credential **out, struct error *err);

/* All there are; lent until the next call that is not const. */
size_t identity_token_count(const struct identity *identity);
const struct identity_token *identity_token_at(const struct identity *identity, size_t index);
size_t identity_credential_count(const struct identity *identity);
const struct identity_credential *identity_credential_at(const struct identity *identity,
                                                         size_t index);

#endif
