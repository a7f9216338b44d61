/* files.c - maps files, finds the one with a token by binary search, and reads tokens of every
 * width.
 *
 * All of a file is looked at whenever it is opened, so its largest token is sought in blocks of
 * constant length, which the compiler makes vectors of. */
#include "worker/data/files.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <assert.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 1024

static uint16_t read_16(const unsigned char *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return le16toh(bits);
}

static uint32_t read_32(const unsigned char *at)
{
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    return le32toh(bits);
}

uint32_t elements_at(struct elements elements, uint64_t index)
{
    const unsigned char *at = elements.bytes + index * elements.width;
    return elements.width == 1 ? *at : elements.width == 2 ? read_16(at) : read_32(at);
}

void elements_widen(struct elements elements, uint64_t count, int32_t *out)
{
    if (elements.width == 1)
        for (uint64_t i = 0; i < count; i++)
            out[i] = elements.bytes[i];
    else if (elements.width == 2)
        for (uint64_t i = 0; i < count; i++)
            out[i] = read_16(elements.bytes + 2 * i);
    else
        for (uint64_t i = 0; i < count; i++)
            out[i] = (int32_t)read_32(elements.bytes + 4 * i);
}

static void range_block_16(const unsigned char *bytes, uint16_t *smallest, uint16_t *largest)
{
    uint16_t low = *smallest, high = *largest;
    for (int i = 0; i < BLOCK; i++) {
        uint16_t token = read_16(bytes + (size_t)2 * (size_t)i);
        low = token < low ? token : low;
        high = token > high ? token : high;
    }
    *smallest = low;
    *largest = high;
}

static void range_block_32(const unsigned char *bytes, uint32_t *smallest, uint32_t *largest)
{
    uint32_t low = *smallest, high = *largest;
    for (int i = 0; i < BLOCK; i++) {
        uint32_t token = read_32(bytes + (size_t)4 * (size_t)i);
        low = token < low ? token : low;
        high = token > high ? token : high;
    }
    *smallest = low;
    *largest = high;
}

/* Look at whole blocks; returns how many elements they have. */
static uint64_t range_blocks(struct elements elements, uint32_t *smallest, uint32_t *largest)
{
    uint64_t blocks = elements.width == 1 ? 0 : elements.count / BLOCK;
    uint16_t low = UINT16_MAX, high = 0;
    for (uint64_t i = 0; i < blocks; i++) {
        const unsigned char *bytes = elements.bytes + i * BLOCK * elements.width;
        if (elements.width == 2)
            range_block_16(bytes, &low, &high);
        else
            range_block_32(bytes, smallest, largest);
    }
    if (elements.width == 2 && blocks) {
        *smallest = low;
        *largest = high;
    }
    return blocks * BLOCK;
}

void elements_range(struct elements elements, uint32_t *smallest, uint32_t *largest)
{
    *smallest = UINT32_MAX;
    *largest = 0;
    for (uint64_t i = range_blocks(elements, smallest, largest); i < elements.count; i++) {
        uint32_t token = elements_at(elements, i);
        *smallest = token < *smallest ? token : *smallest;
        *largest = token > *largest ? token : *largest;
    }
}

uint64_t elements_count(struct elements elements, uint32_t id)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < elements.count; i++)
        count += elements_at(elements, i) == id;
    return count;
}

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

static int compare_names(const struct dirent **one, const struct dirent **other)
{
    return strcmp((*one)->d_name, (*other)->d_name);
}

struct identity {
    dev_t device;
    ino_t inode;
};

/* The files that a directory has contributed, by identity and not by name. */
struct seen {
    struct identity *items;
    size_t count, capacity;
};

/* Whether a file has been seen before; from now on it has. */
static bool seen_before(struct seen *seen, const struct stat *status)
{
    for (size_t i = 0; i < seen->count; i++)
        if (seen->items[i].device == status->st_dev && seen->items[i].inode == status->st_ino)
            return true;
    seen->items = grow(seen->items, seen->count, &seen->capacity, sizeof *seen->items);
    seen->items[seen->count++] = (struct identity){status->st_dev, status->st_ino};
    return false;
}

/* Append a file's bytes, if it has any. Takes the file. */
static void append_text(struct files *files, struct file file, const char *path)
{
    if (file.size)
        files_append(files, file, path, (struct elements){file.map, 1, file.size});
}

/* A file that cannot be read is an error, not a smaller corpus, because every node must seen_before
 * the same data. A dangling link is ignored. A file with two names is read once: otherwise what is
 * held out under one name would be trained on under the other. */
static int append_member(struct files *files, struct seen *seen, const char *directory,
                         const char *name, struct error *err)
{
    char *path = xasprintf("%s/%s", directory, name);
    struct stat status;
    struct file file;
    int rc = 0;
    if (stat(path, &status) < 0) {
        if (errno != ENOENT)
            rc = error_set(err, -errno, "cannot read '%s': %s", path, strerror(errno));
    } else if (S_ISREG(status.st_mode) && !seen_before(seen, &status)) {
        rc = file_map(path, &file, err);
        if (rc == 0 && file.size && memchr(file.map, '\0', file.size))
            file_unmap(&file);
        else if (rc == 0)
            append_text(files, file, path);
    }
    free(path);
    return rc;
}

static int append_folder(struct files *files, const char *path, struct error *err)
{
    struct dirent **entries;
    struct seen seen = {0};
    int count = scandir(path, &entries, NULL, compare_names);
    if (count < 0)
        return error_set(err, -errno, "cannot list '%s': %s", path, strerror(errno));
    size_t before = files->count;
    int rc = 0;
    for (int i = 0; i < count; i++) {
        if (rc == 0)
            rc = append_member(files, &seen, path, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    free(seen.items);
    if (rc == 0 && files->count == before)
        return error_set(err, -ENOENT, "there is no text file in the directory '%s'", path);
    return rc;
}

int files_open_text(struct files *files, const struct texts *paths, int64_t vocab,
                    struct error *err)
{
    if (vocab < 256)
        return error_set(err, -ERANGE, "a vocabulary of %lld tokens cannot hold every byte: 256",
                         (long long)vocab);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < paths->count; i++) {
        struct file file;
        rc = file_map(paths->items[i], &file, err);
        if (rc == 0)
            append_text(files, file, paths->items[i]);
        else if (rc == -EISDIR)
            rc = append_folder(files, paths->items[i], err);
    }
    return rc;
}
