/* secret.c - reads files after checking, on the open file, who else may read them. */
#include "common/trust/secret.h"

#include "common/base/file.h"
#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
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
