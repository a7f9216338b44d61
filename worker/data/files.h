/* files.h - several mapped files, read as one array of tokens, which may be of different widths.
 *
 * The files must not be truncated while they are mapped: reading beyond the new end faults. */
#ifndef WORKER_DATA_FILES_H
#define WORKER_DATA_FILES_H

#include "common/base/error.h"
#include "common/config/fields.h"

#include <stddef.h>
#include <stdint.h>

/* Tokens as they lie in a file: little-endian, unsigned, of 1, 2 or 4 bytes each, at any address.
 */
struct elements {
    const unsigned char *bytes; /* lent */
    size_t width;               /* bytes per token */
    uint64_t count;
};

uint32_t elements_at(struct elements elements, uint64_t index);
/* Convert the first `count` to token ids, which are below 2^31. */
void elements_widen(struct elements elements, uint64_t count, int32_t *out);
/* The smallest and the largest; those of none are UINT32_MAX and 0. */
void elements_range(struct elements elements, uint32_t *smallest, uint32_t *largest);
/* How many are equal to id. */
uint64_t elements_count(struct elements elements, uint32_t id);

struct file {
    void *map; /* NULL for an empty file */
    size_t size;
};

/* Map a regular file, read-only. -EISDIR or -EINVAL if it is not one; otherwise -errno. err has the
 * path. */
int file_map(const char *path, struct file *out, struct error *err);
/* Read up to `size` bytes from the beginning of a regular file; returns their number, 0 if it
 * cannot be read. */
size_t file_head(const char *path, void *out, size_t size);
/* Accepts a zeroed one. */
void file_unmap(struct file *file);

/* A zeroed one is empty. */
struct files {
    struct files_part *parts; /* in order of their first token */
    size_t count, capacity;
    uint64_t size; /* total number of tokens */
};

/* Unmap all files, and zero the struct. */
void files_finish(struct files *files);
/* Append a file, and the tokens that lie in it, which may be none. Takes the file, and copies its
 * path. */
void files_append(struct files *files, struct file file, const char *path,
                  struct elements elements);
/* Part number `index`: its file (lent), and the file's path. NULL beyond the last. */
const struct file *files_at(const struct files *files, size_t index, const char **path);
/* Fingerprint of a file: of all its bytes up to FILE_HASH_WHOLE; for larger files, of
 * FILE_HASH_SAMPLES evenly spaced samples of 1 MiB, from the first MiB to the last. So it reads at
 * most 64 MiB, in about a tenth of a second, whatever the size. */
#define FILE_HASH_WHOLE ((size_t)64 << 20)
#define FILE_HASH_SAMPLES 64
uint64_t file_hash(const struct file *file);
/* Lend the tokens from `first` on, as far as they are contiguous; none at the end. first must be
 * <= size. */
struct elements files_span(const struct files *files, uint64_t first);

/* Append texts, whose bytes are tokens, 0 .. 255, to an empty array: any file will do. A path may
 * be a directory, which stands for its regular files, in byte order of their names, except those
 * that contain a NUL byte, which no text does. Subdirectories are not entered. -errno with the
 * path; -ERANGE: the vocabulary has no room for every byte. The caller finishes files in either
 * case. */
int files_open_text(struct files *files, const struct texts *paths, int64_t vocab,
                    struct error *err);

#endif
