/* file.c - durable files: write a temporary file, fsync it, rename it, fsync the folder. In this
 * order a name never refers to half a file. And a time for which no disk has room: a drill. */
#include "common/base/file.h"

#include "common/base/clock.h"
#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)16 << 20)
#define WRITE_BYTES ((size_t)8 << 20) /* at a time: a longer write could not be interrupted */

static _Atomic double denied_until_s;

void disk_space_deny(uint32_t for_ms)
{
    denied_until_s = clock_s() + for_ms / 1e3;
}

uint32_t disk_space_denied_ms(void)
{
    double until_s = denied_until_s;
    double left_s = until_s > 0 ? until_s - clock_s() : 0; /* no clock is read without a drill */
    return left_s > 0 ? (uint32_t)(left_s * 1e3) + 1 : 0;
}

/* 0 or -ENOSPC: asked before each write, whose answer then is as if write() had returned it. */
static int disk_space_check(void)
{
    return disk_space_denied_ms() > 0 ? -ENOSPC : 0;
}

int file_read_all(int fd, size_t bytes_max, char **out, size_t *size)
{
    size_t used = 0, room = 4096;
    char *text = xcalloc(1, room);
    ssize_t n;
    while ((n = read(fd, text + used, room - used - 1)) > 0 || (n < 0 && errno == EINTR)) {
        used += n > 0 ? (size_t)n : 0;
        if (used > bytes_max)
            break;
        if (used + 1 == room)
            text = xrealloc(text, room *= 2);
    }
    text[used] = '\0';
    int rc = n < 0 ? -errno : n > 0 ? -EFBIG : 0;
    if (rc < 0) {
        free(text);
        return rc;
    }
    *out = text;
    *size = used;
    return 0;
}

int file_read_open(int fd, const char *name, char **out, struct error *err)
{
    size_t size;
    int rc = file_read_all(fd, FILE_BYTES_MAX, out, &size);
    return rc < 0 ? error_set(err, rc, "read '%s': %s", name, strerror(-rc)) : 0;
}

int file_read(const char *path, char **out, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, -errno, "read '%s': %s", path, strerror(errno));
    int rc = file_read_open(fd, path, out, err);
    close(fd);
    return rc;
}

int file_line(const char *path, char *out, size_t size)
{
    out[0] = '\0';
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    bool read = fgets(out, (int)size, file) != NULL;
    fclose(file);
    out[read ? strcspn(out, "\n") : 0] = '\0';
    return read ? 0 : -ENODATA;
}

int folder_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd >= 0 && fsync(fd) == 0 ? 0 : -errno;
    if (fd >= 0)
        close(fd);
    return rc;
}

int folder_sync_above(const char *path)
{
    char *copy = xstrdup(path);
    int rc = folder_sync(dirname(copy));
    free(copy);
    return rc;
}

int file_write_all(int fd, const void *data, size_t size)
{
    const char *next = data;
    while (size > 0) {
        int rc = disk_space_check();
        if (rc < 0)
            return rc;
        ssize_t written = write(fd, next, size < WRITE_BYTES ? size : WRITE_BYTES);
        if (written < 0 && errno != EINTR)
            return -errno;
        next += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static int write_and_sync(int fd, const char *text)
{
    int rc = file_write_all(fd, text, strlen(text));
    return rc == 0 && fsync(fd) < 0 ? -errno : rc;
}

int file_write(const char *path, const char *text, mode_t mode, struct error *err)
{
    char *draft = xasprintf("%s.%ld", path, (long)getpid());
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    int rc = fd < 0 ? -errno : write_and_sync(fd, text);
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(draft, path) < 0)
        rc = -errno;
    if (rc < 0)
        unlink(draft);
    else
        rc = folder_sync_above(path);
    free(draft);
    return rc < 0 ? error_set(err, rc, "write '%s': %s", path, strerror(-rc)) : 0;
}

int folder_make(const char *path, struct error *err)
{
    return folder_make_mode(path, 0700, err);
}

int folder_make_mode(const char *path, mode_t mode, struct error *err)
{
    struct stat status;
    if (stat(path, &status) == 0)
        return S_ISDIR(status.st_mode) ? 0 : error_set(err, -ENOTDIR, "'%s' is no folder", path);
    char *above = xstrdup(path);
    int rc = folder_make_mode(dirname(above), mode, err);
    free(above);
    if (rc < 0)
        return rc;
    rc = disk_space_check();
    if (rc == 0 && mkdir(path, mode) < 0 && errno != EEXIST)
        rc = -errno;
    if (rc == 0)
        rc = folder_sync_above(path);
    return rc < 0 ? error_set(err, rc, "make the folder '%s': %s", path, strerror(-rc)) : 0;
}
