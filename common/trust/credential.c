/* credential.c - "NAME SECRET\n". */
#include "common/trust/credential.h"

#include "common/base/memory.h"
#include "common/trust/secret.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int credential_read(const char *path, struct credential *out, struct error *err)
{
    char *text, rest;
    int rc = secret_read(path, &text, err);
    if (rc < 0)
        return rc;
    *out = (struct credential){0};
    if (sscanf(text, "%63s %64s %c", out->name, out->secret, &rest) != 2 ||
        strlen(out->secret) != CREDENTIAL_SECRET_SIZE - 1)
        rc = error_set(err, -EINVAL,
                       "%s holds no credential: remove it, and join again with a new token", path);
    secret_free(text);
    return rc;
}

int credential_write(const char *path, const struct credential *credential, struct error *err)
{
    char *text = xasprintf("%s %s\n", credential->name, credential->secret);
    int rc = secret_write(path, text, err);
    secret_free(text);
    return rc;
}

int credential_read_token(const char *path, char **out, struct error *err)
{
    char *text;
    int rc = secret_read(path, &text, err);
    if (rc < 0)
        return rc;
    size_t from = strspn(text, " \t\r\n"), length = strcspn(text + from, " \t\r\n");
    memmove(text, text + from, length);
    explicit_bzero(text + length, strlen(text + length));
    if (length == 0) {
        secret_free(text);
        return error_set(err, -EINVAL, "%s is empty: it should hold a join token", path);
    }
    *out = text;
    return 0;
}
