/* files.c - maps files, and finds the one with a token by binary search. */
#include "worker/data/files.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct files_part {
    struct file file;
    char *path;
    struct elements elements;
    uint64_t first; /* number of its first token in all files */
};

static int map_descriptor(int descriptor, const char *path, struct file *out, struct error *err)
{
    struct stat status;
    if (fstat(descriptor, &status) < 0)
        return error_set(err, -errno, "cannot read '%s': %s", path, strerror(errno));
    if (S_ISDIR(status.st_mode))
        return error_set(err, -EISDIR, "'%s' is a directory, not a file", path);
    if (!S_ISREG(status.st_mode))
        return error_set(err, -EINVAL, "'%s' is no regular file", path);
    struct file file = {.size = (size_t)status.st_size};
    if (file.size) {
        file.map = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (file.map == MAP_FAILED)
            return error_set(err, -errno, "cannot map the %zu bytes of '%s': %s", file.size, path,
                             strerror(errno));
    }
    *out = file;
    return 0;
}

int file_map(const char *path, struct file *out, struct error *err)
{
    /* Without O_NONBLOCK, opening a FIFO would wait for its writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return error_set(err, -errno, "cannot open '%s': %s", path, strerror(errno));
    int rc = map_descriptor(descriptor, path, out, err);
    close(descriptor); /* the mapping stays */
    return rc;
}

size_t file_head(const char *path, void *out, size_t size)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return 0;
    bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    ssize_t count = regular ? pread(descriptor, out, size, 0) : 0;
    close(descriptor);
    return count > 0 ? (size_t)count : 0;
}

void file_unmap(struct file *file)
{
    if (file->map)
        munmap(file->map, file->size);
    *file = (struct file){0};
}

void files_finish(struct files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        file_unmap(&files->parts[i].file);
        free(files->parts[i].path);
    }
    free(files->parts);
    *files = (struct files){0};
}

void files_append(struct files *files, struct file file, const char *path, struct elements elements)
{
    files->parts = grow(files->parts, files->count, &files->capacity, sizeof *files->parts);
    files->parts[files->count++] = (struct files_part){
        .file = file,
        .path = xstrdup(path),
        .elements = elements,
        .first = files->size,
    };
    files->size += elements.count;
}

/* Of the parts that begin at the same token, all but the last have none. */
struct elements files_span(const struct files *files, uint64_t first)
{
    assert(first <= files->size);
    if (first == files->size)
        return (struct elements){0};
    /* parts[low].first <= first < parts[high].first */
    size_t low = 0, high = files->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (files->parts[middle].first <= first)
            low = middle;
        else
            high = middle;
    }
    struct elements elements = files->parts[low].elements;
    uint64_t inside = first - files->parts[low].first;
    elements.bytes += inside * elements.width;
    elements.count -= inside;
    return elements;
}

const struct file *files_at(const struct files *files, size_t index, const char **path)
{
    if (index >= files->count)
        return NULL;
    *path = files->parts[index].path;
    return &files->parts[index].file;
}

uint64_t file_hash(const struct file *file)
{
    const size_t sample = FILE_HASH_WHOLE / FILE_HASH_SAMPLES;
    uint64_t hash = HASH_START;
    if (file->size <= FILE_HASH_WHOLE)
        return file->size ? hash_bytes(hash, file->map, file->size) : hash;
    for (size_t i = 0; i < FILE_HASH_SAMPLES; i++) {
        size_t first =
            (size_t)((double)(file->size - sample) * (double)i / (FILE_HASH_SAMPLES - 1));
        hash = hash_bytes(hash, (const unsigned char *)file->map + first, sample);
    }
    return hash;
}
