/* write.c - write, fsync, rename, fsync of the folder; and deleting in the opposite order. */
#include "worker/checkpoint/write.h"

#include "common/base/file.h"
#include "common/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static int write_draft(const char *draft, const char *header, size_t header_size, const void *data,
                       size_t size)
{
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return -errno;
    int rc = file_write_all(fd, header, header_size);
    if (rc == 0)
        rc = file_write_all(fd, data, size);
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
    return rc;
}

/* A file that exists already belongs to somebody else, and stays; rename would replace it. */
static int publish(const char *draft, const char *path, const char *folder)
{
    int rc = access(path, F_OK) == 0 ? -EEXIST : rename(draft, path) < 0 ? -errno : 0;
    return rc == 0 ? folder_sync(folder) : rc;
}

static uint64_t checksum_of(const char *header, size_t header_size, const void *data, size_t size)
{
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, header, header_size);
    XXH3_64bits_update(state, data, size);
    uint64_t checksum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return checksum;
}

int shard_write(const char *folder, int rank, struct slice *slices, size_t count, const void *data,
                struct manifest_shard *out, struct error *err)
{
    size_t size = 0, header_size;
    for (size_t i = 0; i < count; i++) {
        slices[i].checksum = XXH3_64bits((const char *)data + slices[i].offset, slices[i].bytes);
        size += slices[i].bytes;
    }
    char *header = shard_print(slices, count, &header_size);
    char *file = xasprintf("rank-%05d.safetensors", rank);
    char *path = xasprintf("%s/%s", folder, file), *draft = xasprintf("%s.part", path);
    int rc = write_draft(draft, header, header_size, data, size);
    if (rc == 0)
        rc = publish(draft, path, folder);
    if (rc == 0) {
        *out = (struct manifest_shard){file, header_size + size,
                                       checksum_of(header, header_size, data, size),
                                       XXH3_64bits(header, header_size)};
    } else {
        error_set(err, rc, "write '%s': %s", path, strerror(-rc));
        unlink(draft);
        free(file);
    }
    free(draft);
    free(path);
    free(header);
    return rc;
}

/* Delete everything in the folder; there are only files. */
static int delete_files(DIR *folder)
{
    struct dirent *entry;
    int rc = 0;
    while (rc == 0 && (errno = 0, entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(folder), entry->d_name, 0) < 0 && errno != ENOENT)
            rc = -errno;
    }
    return rc == 0 ? -errno : rc; /* 0 if the last entry was read */
}

int checkpoint_delete(const char *path, struct error *err)
{
    DIR *folder = opendir(path);
    int rc = folder ? 0 : errno == ENOENT ? -ENOENT : -errno;
    if (folder && unlinkat(dirfd(folder), MANIFEST_NAME, 0) < 0 && errno != ENOENT)
        rc = -errno;
    if (folder && rc == 0)
        rc = fsync(dirfd(folder)) < 0 ? -errno : delete_files(folder);
    if (folder)
        closedir(folder);
    if (rc == 0 && rmdir(path) < 0 && errno != ENOENT)
        rc = -errno;
    if (rc == -ENOENT)
        return 0;
    return rc < 0 ? error_set(err, rc, "delete '%s': %s", path, strerror(-rc)) : 0;
}

static bool is_over(const char *name, uint64_t epoch, uint64_t step, const char *const *keep,
                    size_t count)
{
    uint64_t of_step, of_epoch;
    if (!checkpoint_name_parse(name, &of_step, &of_epoch) || of_epoch > epoch ||
        (of_epoch == epoch && of_step > step))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(keep[i], name) == 0)
            return false;
    return true;
}

int checkpoint_clean(const char *root, uint64_t epoch, uint64_t step, const char *const *keep,
                     size_t count, struct error *err)
{
    DIR *folder = opendir(root);
    struct dirent *entry;
    int rc = 0;
    if (!folder)
        return error_set(err, -errno, "read '%s': %s", root, strerror(errno));
    while (rc == 0 && (entry = readdir(folder))) {
        if (!is_over(entry->d_name, epoch, step, keep, count))
            continue;
        char *path = xasprintf("%s/%s", root, entry->d_name);
        rc = checkpoint_delete(path, err);
        free(path);
    }
    closedir(folder);
    return rc;
}
