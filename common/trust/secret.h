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

#endif
