/* secret.c - reads files after checking, on the open file, who else may read them; and reads,
 * writes and draws credentials, whose files hold "NAME SECRET\n". */
#include "common/trust/secret.h"

#include "common/base/file.h"
#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Larger than any chain of certificates. */
#define FILE_SIZE_MAX ((off_t)1 << 20)

static int check_file(int fd, const char *path, bool secret, struct stat *status, struct error *err)
{
    if (fstat(fd, status) < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(status->st_mode))
        return error_set(err, -EINVAL, "%s is no file", path);
    if (status->st_size > FILE_SIZE_MAX)
        return error_set(err, -EINVAL, "%s is too large for what it should be", path);
    if (secret && (status->st_mode & (S_IRWXG | S_IRWXO)))
        return error_set(err, -EACCES,
                         "%s is open to others than its owner (mode %03o): chmod 600 it", path,
                         status->st_mode & 0777u);
    return 0;
}

static int read_all(int fd, const char *path, size_t size, char **out, struct error *err)
{
    char *text = xcalloc(1, size + 1);
    size_t used = 0;
    ssize_t got = 1;
    while (used < size && got > 0) {
        got = read(fd, text + used, size - used);
        used += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        int rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
        free(text);
        return rc;
    }
    *out = text;
    return 0;
}

static int read_file(const char *path, bool secret, char **out, struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    int rc = check_file(fd, path, secret, &status, err);
    if (rc == 0)
        rc = read_all(fd, path, (size_t)status.st_size, out, err);
    close(fd);
    return rc;
}

int secret_read(const char *path, char **out, struct error *err)
{
    return read_file(path, true, out, err);
}

int secret_read_public(const char *path, char **out, struct error *err)
{
    return read_file(path, false, out, err);
}

void secret_free(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

int secret_write(const char *path, const char *text, struct error *err)
{
    return file_write(path, text, 0600, err);
}

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

static int credential_write(const char *path, const struct credential *credential,
                            struct error *err)
{
    char *text = xasprintf("%s %s\n", credential->name, credential->secret);
    int rc = secret_write(path, text, err);
    secret_free(text);
    return rc;
}

static int credential_draw(char secret[CREDENTIAL_SECRET_SIZE], struct error *err)
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
        rc = credential_draw(out->secret, err);
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
