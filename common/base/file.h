/* file.h - small files as a whole: read, and written so that a crash leaves the old or the new. */
#ifndef COMMON_BASE_FILE_H
#define COMMON_BASE_FILE_H

#include "common/base/error.h"

#include <stddef.h>
#include <sys/types.h>

/* The file as text, yours, with a NUL behind. -EFBIG beyond 16 MiB, else -errno, with its path. */
int file_read(const char *path, char **out, struct error *err);

/* The same of a descriptor, which stays open: from where it is to its end, and by what name. */
int file_read_open(int fd, const char *name, char **out, struct error *err);

/* Put text in the place of the file, durably: when this returns 0, it and its name survive a loss
 * of power; when it fails, or the machine does, the file is as it was. -errno with its path. */
int file_write(const char *path, const char *text, mode_t mode, struct error *err);

/* Make the folder, and what is missing above it, for its owner only, durably. -errno with the
 * path; -ENOTDIR when it is a file. */
int folder_make(const char *path, struct error *err);
/* The same for others too, as far as the process's umask lets them. */
int folder_make_mode(const char *path, mode_t mode, struct error *err);
/* Make durable what a folder lists; what the folder above a path lists. -errno, without words. */
int folder_sync(const char *path);
int folder_sync_above(const char *path);

#endif
