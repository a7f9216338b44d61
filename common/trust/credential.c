/* credential.c - reads, writes and draws credentials. Their files hold "NAME SECRET\n". */

#include "common/base/memory.h"
#include "common/trust/secret.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

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

static int draw(char secret[CREDENTIAL_SECRET_SIZE], struct error *err)
{
    uint8_t bytes[(CREDENTIAL_SECRET_SIZE - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_set(err, -EIO, "no random numbers for a credential: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}

static char *offered_at(const char *path)
{
    return xasprintf("%s.offered", path);
}

int credential_offer(const char *path, const char *name, struct credential *out, struct error *err)
{
    char *offered = offered_at(path);
    int rc = 0;
    if (credential_read(offered, out, NULL) < 0 || strcmp(out->name, name) != 0) {
        *out = (struct credential){0};
        snprintf(out->name, sizeof out->name, "%s", name);
        rc = draw(out->secret, err);
        if (rc == 0)
            rc = credential_write(offered, out, err);
    }
    free(offered);
    return rc;
}

int credential_keep(const char *path, const struct credential *credential, struct error *err)
{
    char *offered = offered_at(path);
    int rc = credential_write(path, credential, err);
    if (rc == 0)
        unlink(offered);
    free(offered);
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
        return error_set(err, -EINVAL, "%s is empty: it should hold a token", path);
    }
    *out = text;
    return 0;
}
