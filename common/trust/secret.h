/* secret.h - small files that only their owner may read: keys, tokens, credentials. */
#ifndef COMMON_TRUST_SECRET_H
#define COMMON_TRUST_SECRET_H

#include "common/base/error.h"

/* Read a whole file; *out is freed with secret_free(). -EACCES when its mode grants anything to
 * others than its owner, or we may not read it; -EINVAL when it is not a regular file or is larger
 * than 1 MiB; otherwise the negative errno of open(2) or read(2). */
int secret_read(const char *path, char **out, struct error *err);
/* The same for a file that everybody may read, such as a certificate. */
int secret_read_public(const char *path, char **out, struct error *err);
/* Overwrite the text with zeros and free it. Accepts NULL. */
void secret_free(char *text);

/* Write a file with mode 0600, so that after a crash it has either all of the text or its earlier
 * content. Negative errno. */
int secret_write(const char *path, const char *text, struct error *err);

#define CREDENTIAL_NAME_SIZE 64
#define CREDENTIAL_SECRET_SIZE 65 /* 256 bits as hexadecimal digits, and the NUL */

/* What a node or user keeps after joining a cluster: its name and a secret, in a file of one line.
 * The coordinator stores only a hash of the secret. */
struct credential {
    char name[CREDENTIAL_NAME_SIZE];
    char secret[CREDENTIAL_SECRET_SIZE];
};

/* -ENOENT when there is no such file, -EINVAL when it holds something else; other errors as
 * secret_read(). */
int credential_read(const char *path, struct credential *out, struct error *err);
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
