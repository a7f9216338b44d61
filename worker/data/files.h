/* files.h - several mapped files read as one run of elements of one width.
 *
 * The files must not be shortened while they are mapped: reading past a new end faults. */
#ifndef WORKER_DATA_FILES_H
#define WORKER_DATA_FILES_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct file {
    void *map; /* NULL for an empty file */
    size_t size;
};

/* A regular file, read only. -errno with the path and the system's words; -EISDIR, -EINVAL for
 * what is no regular file. */
int file_map(const char *path, struct file *out, struct error *err);
/* Forgives a zeroed one. */
void file_unmap(struct file *file);

struct files {
    struct files_part *parts; /* in order of their first element */
    size_t count, capacity;
    size_t width;  /* bytes per element */
    uint64_t size; /* elements in all */
};

/* Elements of width bytes. */
void files_init(struct files *files, size_t width);
void files_finish(struct files *files);
/* Append what follows the first skip bytes; takes the file, and copies its path. Whole elements
 * only: a rest shorter than one is not read. */
void files_append(struct files *files, struct file file, const char *path, size_t skip);
/* Of the parts by number: the file, lent, with its path; NULL past the last. */
const struct file *files_at(const struct files *files, size_t index, const char **path);
/* Fingerprint of a file: of all its bytes up to FILE_HASH_WHOLE, of FILE_HASH_SAMPLES evenly
 * spaced MiB of a larger one, the first of them its head and the last its tail. So it takes at
 * most a tenth of a second or so, and 64 MiB of reading, whatever the size. */
#define FILE_HASH_WHOLE ((size_t)64 << 20)
#define FILE_HASH_SAMPLES 64
uint64_t file_hash(const struct file *file);
/* Lend the elements from first on as far as they lie together; *count says how many. NULL at the
 * end. first <= size. */
const void *files_span(const struct files *files, uint64_t first, uint64_t *count);

#endif
