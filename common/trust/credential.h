/* credential.h - the credential that a node or user keeps after joining a cluster: its name and a
 * secret, in a file of one line. The coordinator stores only a hash of the secret. */
#ifndef COMMON_TRUST_CREDENTIAL_H
#define COMMON_TRUST_CREDENTIAL_H

#include "common/base/error.h"

#define CREDENTIAL_NAME_SIZE 64
#define CREDENTIAL_SECRET_SIZE 65 /* 256 bits as hexadecimal digits, and the NUL */

struct credential {
    char name[CREDENTIAL_NAME_SIZE];
    char secret[CREDENTIAL_SECRET_SIZE];
};

/* -ENOENT when there is no such file, -EINVAL when it holds something else; other errors as
 * secret_read(). */
int credential_read(const char *path, struct credential *out, struct error *err);
/* Errors as secret_write(). */
int credential_write(const char *path, const struct credential *credential, struct error *err);
/* The credential to offer when joining as `name`. An earlier attempt may have been accepted without
 * the answer arriving, so what it offered is used again; otherwise a new secret is drawn and stored
 * next to `path`, as PATH.offered. -EIO without random numbers; other errors as secret_write(). */
int credential_offer(const char *path, const char *name, struct credential *out, struct error *err);
/* The coordinator accepted the offer: store it at `path` and delete PATH.offered. Errors as
 * secret_write(). */
int credential_keep(const char *path, const struct credential *credential, struct error *err);

/* Read a token, the first word of a file; freed with secret_free(). Errors as secret_read(), and
 * -EINVAL when the file is empty. */
int credential_read_token(const char *path, char **out, struct error *err);

#endif
