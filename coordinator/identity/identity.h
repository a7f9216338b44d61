/* identity.h - who is who within a role: join tokens, and the credentials they were exchanged for.
 *
 * A caller's role follows from its certificate. Its name has to be proved by a credential: a random
 * secret that it chose when it joined, of which only a hash is kept here. Joining takes a token
 * issued by somebody who may admit others: for one role, possibly for one name, for a limited time
 * and number of uses.
 *
 * Times are milliseconds of the calendar and random numbers come from the caller: nothing is drawn
 * or read here. Nothing is written either: what a call has changed is returned as a record, which
 * must be stored before anybody is told. Not thread-safe. */
#ifndef COORDINATOR_IDENTITY_IDENTITY_H
#define COORDINATOR_IDENTITY_IDENTITY_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

#define IDENTITY_NAME_SIZE 64
#define IDENTITY_ID_SIZE 17     /* 64 bits in hexadecimal, with a NUL */
#define IDENTITY_SECRET_SIZE 65 /* 256 bits in hexadecimal, with a NUL */
/* "ID.SECRET", with a NUL. */
#define IDENTITY_TOKEN_SIZE (IDENTITY_ID_SIZE + IDENTITY_SECRET_SIZE)
#define IDENTITY_HASH_BYTES 32   /* SHA-256 */
#define IDENTITY_RANDOM_BYTES 40 /* random bytes that a call needs */
#define IDENTITY_TTL_MS_MAX (31ull * 24 * 3600 * 1000)
#define IDENTITY_USES_MAX 10000u
#define IDENTITY_COUNT_MAX 100000u /* limit on tokens, and on credentials */

enum identity_role { IDENTITY_WORKER, IDENTITY_USER, IDENTITY_ROLES };
extern const char *const identity_role_names[]; /* "worker", "user"; ends with NULL */
/* -EINVAL if the text is no role; the message lists them. */
int identity_role_parse(const char *text, enum identity_role *out, struct error *err);

struct identity_token {
    char id[IDENTITY_ID_SIZE];
    enum identity_role role;
    char name[IDENTITY_NAME_SIZE]; /* "": any name that has not joined yet */
    uint8_t hash[IDENTITY_HASH_BYTES];
    uint64_t issued_ms, expires_ms;
    uint32_t uses_left;
};

struct identity_credential {
    enum identity_role role;
    char name[IDENTITY_NAME_SIZE];
    uint8_t hash[IDENTITY_HASH_BYTES];
    uint64_t issued_ms;
    uint64_t revoked_ms; /* 0: valid */
};

struct identity;
struct identity *identity_create(void);
/* Accepts NULL. */
void identity_destroy(struct identity *identity);

/* Add a stored record; copied, replacing an older one. */
void identity_restore_token(struct identity *identity, const struct identity_token *token);
void identity_restore_credential(struct identity *identity,
                                 const struct identity_credential *credential);

/* What a token shall be good for. */
struct identity_grant {
    enum identity_role role;
    const char *name; /* "": any name that has not joined yet */
    uint64_t ttl_ms;
    uint32_t uses;
};

/* Issue a token: its text, and its record, lent until the next non-const call. -EINVAL: invalid
 * name, time or number of uses. -ENOSPC: there are too many tokens. */
int identity_issue(struct identity *identity, const struct identity_grant *grant, uint64_t now_ms,
                   const uint8_t random[IDENTITY_RANDOM_BYTES], char text[IDENTITY_TOKEN_SIZE],
                   const struct identity_token **out, struct error *err);
/* Add a token whose text was agreed upon beforehand. If it is known already, it stays as it is,
 * with what is left of it, and *out is NULL. Errors as above; -EINVAL also if the text is no
 * token. */
int identity_register(struct identity *identity, const struct identity_grant *grant,
                      const char *text, uint64_t now_ms, const struct identity_token **out,
                      struct error *err);

/* Join tokens agreed upon beforehand, from a file with one token per line:
 *
 *     worker 0123456789abcdef.0123...  24h  8      # role, ID.SECRET, validity, uses */
struct identity_agreed {
    uint64_t now_ms;
    /* called for each token that was not known; NULL: nobody needs to be told */
    void (*added_cb)(void *data, const struct identity_token *token);
    void *data;
};

/* Register all tokens of the file as by identity_register(). -EINVAL: the file cannot be read, is
 * accessible to others, or is invalid; the message has file and line. */
int identity_register_agreed(struct identity *identity, const char *path,
                             const struct identity_agreed *tokens, struct error *err);
/* Check the file without registering anything. */
int identity_check_agreed(const char *path, struct error *err);

/* What joining has changed. Both are NULL if the credential is already that of the name: whoever
 * joins without hearing the answer tries again. */
struct identity_joined {
    const struct identity_token *token;
    const struct identity_credential *credential;
};

/* Exchange one use of the token for a credential of that name: a secret drawn by the caller, 64
 * hexadecimal digits, of which a hash is kept. -EINVAL: invalid name or secret. -EKEYREJECTED:
 * there is no such token for this role, or it is used up or has expired. -EACCES: the token is for
 * another name, or the name was revoked and the token is not for it. -EEXIST: the name has joined
 * already, and the token is not for it. -ENOSPC: too many have joined. */
int identity_join(struct identity *identity, enum identity_role role, const char *name,
                  const char *token, const char *secret, uint64_t now_ms,
                  struct identity_joined *out, struct error *err);

/* Check a caller's claim to be this name. -EKEYREJECTED: it is not proved. -EACCES: the name was
 * revoked. */
int identity_admit(const struct identity *identity, enum identity_role role, const char *name,
                   const char *secret, struct error *err);

/* Invalidate the credential of a name and all tokens for that name; calls changed(data, token) for
 * each such token. *out is the credential, lent. -ENOENT: the name has not joined. */
typedef void (*identity_token_cb)(void *data, const struct identity_token *token);
int identity_revoke(struct identity *identity, enum identity_role role, const char *name,
                    uint64_t now_ms, identity_token_cb changed, void *data,
                    const struct identity_credential **out, struct error *err);

/* All tokens and credentials; lent until the next non-const call. */
size_t identity_token_count(const struct identity *identity);
const struct identity_token *identity_token_at(const struct identity *identity, size_t index);
size_t identity_credential_count(const struct identity *identity);
const struct identity_credential *identity_credential_at(const struct identity *identity,
                                                         size_t index);

#endif
