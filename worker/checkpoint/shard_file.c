/* shard_file.c - checks a shard before anything in it is used: its size, the length and checksum of
 * its header, then the header itself. */
#include "worker/checkpoint/shard_file.h"

#include "common/base/memory.h"
#include "worker/checkpoint/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define VERIFY_BYTES ((size_t)1 << 20)

int shard_file_read(const struct shard_file *file, void *out, size_t size, uint64_t offset,
                    struct error *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(file->fd, (char *)out + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_set(err, n < 0 ? -errno : -EIO, "read '%s': %s", file->path,
                             n < 0 ? strerror(errno) : "it ends too early");
        done += (size_t)n;
    }
    return 0;
}

static int check_size(const struct shard_file *file, const struct manifest_shard *told,
                      struct error *err)
{
    struct stat status;
    if (fstat(file->fd, &status) < 0)
        return error_set(err, -errno, "%s: %s", file->path, strerror(errno));
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != told->size)
        return error_set(err, -EIO, "'%s' has %lld bytes, %" PRIu64 " were written: it is damaged",
                         file->path, (long long)status.st_size, told->size);
    return 0;
}

/* Read everything before the data, and check it; the caller frees *out. */
static int read_header(const struct shard_file *file, const struct manifest_shard *told, char **out,
                       uint64_t *length, struct error *err)
{
    unsigned char prefix[SAFETENSORS_LENGTH_BYTES];
    int rc = told->size < SAFETENSORS_LENGTH_BYTES
                 ? error_set(err, -EINVAL, "'%s' is too short for a shard", file->path)
                 : shard_file_read(file, prefix, sizeof prefix, 0, err);
    if (rc < 0)
        return rc;
    *length = 0;
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++)
        *length |= (uint64_t)prefix[i] << 8 * i;
    if (*length > SHARD_HEADER_MAX || *length > told->size - SAFETENSORS_LENGTH_BYTES)
        return error_set(err, -EINVAL,
                         "'%s' claims a header of %" PRIu64 " bytes: at most %" PRIu64
                         " can be here",
                         file->path, *length,
                         told->size - SAFETENSORS_LENGTH_BYTES < SHARD_HEADER_MAX
                             ? told->size - SAFETENSORS_LENGTH_BYTES
                             : SHARD_HEADER_MAX);
    char *header = xcalloc(1, SAFETENSORS_LENGTH_BYTES + *length + 1);
    rc = shard_file_read(file, header, SAFETENSORS_LENGTH_BYTES + *length, 0, err);
    if (rc == 0 && XXH3_64bits(header, SAFETENSORS_LENGTH_BYTES + *length) != told->header)
        rc = error_set(err, -EIO, "the header of '%s' is not what was written: it is damaged",
                       file->path);
    if (rc < 0)
        free(header);
    else
        *out = header;
    return rc;
}

int shard_file_open(const char *folder, const struct manifest_shard *told, struct shard_file *file,
                    struct error *err)
{
    char *header = NULL;
    uint64_t length;
    file->path = xasprintf("%s/%s", folder, told->file);
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0)
        return error_set(err, -errno, "open '%s': %s", file->path, strerror(errno));
    int rc = check_size(file, told, err);
    if (rc == 0)
        rc = read_header(file, told, &header, &length, err);
    if (rc == 0 &&
        (rc = shard_parse(header + SAFETENSORS_LENGTH_BYTES, length,
                          told->size - SAFETENSORS_LENGTH_BYTES - length, &file->shard, err)) < 0)
        error_prefix(err, rc, "%s", file->path);
    free(header);
    return rc;
}

void shard_file_close(struct shard_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    shard_finish(&file->shard);
    free(file->path);
}

int shard_file_verify(const struct shard_file *file, const struct manifest_shard *told,
                      struct error *err)
{
    char *bytes = xcalloc(1, VERIFY_BYTES);
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    int rc = 0;
    for (uint64_t done = 0; done < told->size && rc == 0;) {
        size_t size = told->size - done < VERIFY_BYTES ? told->size - done : VERIFY_BYTES;
        rc = shard_file_read(file, bytes, size, done, err);
        if (rc == 0)
            XXH3_64bits_update(state, bytes, size);
        done += size;
    }
    if (rc == 0 && XXH3_64bits_digest(state) != told->checksum)
        rc = error_set(err, -EIO, "'%s' is not what was written: it is damaged", file->path);
    XXH3_freeState(state);
    free(bytes);
    return rc;
}
