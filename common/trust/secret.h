/* secret.h - small files that nobody but their owner may read: keys, tokens, credentials. */
#ifndef COMMON_TRUST_SECRET_H
#define COMMON_TRUST_SECRET_H

#include "common/base/error.h"

/* The whole text, yours by secret_free. -EACCES when others than its owner may read the file, or
 * we may not; -EINVAL when it is larger than any secret; else as open(2). */
int secret_read(const char *path, char **out, struct error *err);
/* The same for what everybody may read, a certificate. */
int secret_read_public(const char *path, char **out, struct error *err);
/* Overwrite and free. Accepts NULL. */
void secret_free(char *text);

/* Put the text there, for its owner alone, so that after a crash the file has all of it or is
 * what it was before. -errno. */
int secret_write(const char *path, const char *text, struct error *err);

#endif
