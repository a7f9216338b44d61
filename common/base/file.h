/* file.h - reads small files as a whole, and writes them atomically and durably: after a crash a
 * file has either its old or its new content. */
#ifndef COMMON_BASE_FILE_H
#define COMMON_BASE_FILE_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read a file into *out, NUL-terminated, to be freed by the caller. -EFBIG beyond 16 MiB, or a
 * negative errno; the text names the path. */
int file_read(const char *path, char **out, struct error *err);

/* The same from the current position of an open descriptor to its end. It stays open; errors call
 * it `name`. */
int file_read_open(int fd, const char *name, char **out, struct error *err);

/* Read the first line of a file, without its end, as far as it fits. *out is "" on failure:
 * -ENODATA when there is no line, or another negative errno when there is no such file. */
int file_line(const char *path, char *out, size_t size);

/* The same with another limit, and without words: -EFBIG beyond bytes_max, or a negative errno.
 * *size is without the NUL at the end; the text may hold others. */
int file_read_all(int fd, size_t bytes_max, char **out, size_t *size);

/* Replace the content of a file by `text`, durably. When this returns 0, content and name survive a
 * power loss; when it fails, or the machine does, the file is as it was. Negative errno; the text
 * names the path. */
int file_write(const char *path, const char *text, mode_t mode, struct error *err);

/* Write all of it at the descriptor's position. Negative errno: some of it may be written. */
int file_write_all(int fd, const void *data, size_t size);

/* Make a folder and all missing ones above it, durably, accessible to the owner only. Succeeds if
 * it exists. Negative errno, -ENOTDIR when it is a file; the text names the path. */
int folder_make(const char *path, struct error *err);
/* The same with this mode, as restricted by the process's umask. */
int folder_make_mode(const char *path, mode_t mode, struct error *err);
/* fsync a folder, which makes its list of names durable. Negative errno. */
int folder_sync(const char *path);
/* The same for the folder that contains this path. */
int folder_sync_above(const char *path);

/* Whether anything more fits on a disk, as far as this process is concerned: a drill may deny it
 * for a time. All of the above then fail with -ENOSPC before they write, so that what follows is
 * what would follow on a full disk. Files that only exist in memory do not ask. Thread-safe. */

/* From now on and for this long there is no space, in place of what was said before. */
void disk_space_deny(uint32_t for_ms);
/* For how long there is still none. */
uint32_t disk_space_denied_ms(void);

#endif
