/* credential.h - what a node or a user keeps after it has joined: its name and a secret, one
 * line of a file. The coordinator has a hash of the secret and no more. */
#ifndef COMMON_TRUST_CREDENTIAL_H
#define COMMON_TRUST_CREDENTIAL_H

#include "common/base/error.h"

#define CREDENTIAL_NAME_SIZE 64
#define CREDENTIAL_SECRET_SIZE 65 /* 256 bits as hexadecimal digits */

struct credential {
    char name[CREDENTIAL_NAME_SIZE];
    char secret[CREDENTIAL_SECRET_SIZE];
};

/* -ENOENT when there is no such file, else as secret_read; -EINVAL when it holds something else. */
int credential_read(const char *path, struct credential *out, struct error *err);
/* As secret_write. */
int credential_write(const char *path, const struct credential *credential, struct error *err);
/* What is offered when joining: what an attempt before this one has offered for `path` and was not
 * told to be taken, for it may have been; else a secret drawn here, and put beside it. Errors as
 * secret_write. */
int credential_offer(const char *path, const char *name, struct credential *out, struct error *err);
/* It was taken, and is at `path` from here on. As secret_write. */
int credential_keep(const char *path, const struct credential *credential, struct error *err);

/* A token from a file of one line, yours by secret_free. Errors as secret_read, and -EINVAL
 * when it is empty. */
int credential_read_token(const char *path, char **out, struct error *err);

#endif
