/* shard_file.h - a shard on disk, with a header that has been checked. */
#ifndef WORKER_CHECKPOINT_SHARD_FILE_H
#define WORKER_CHECKPOINT_SHARD_FILE_H

#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/shard.h"

/* Before opening, fd must be -1 and everything else zero. */
struct shard_file {
    char *path;
    int fd;
    struct shard shard; /* contents of the header */
};

/* Open a shard; `told` is its entry in the manifest. -EIO: it is damaged; -EINVAL: its header is
 * wrong; otherwise errors of the disk. The caller closes it even after an error. */
int shard_file_open(const char *folder, const struct manifest_shard *told, struct shard_file *file,
                    struct error *err);
void shard_file_close(struct shard_file *file);
/* Read `size` bytes from `offset` of the file. -EIO: the file ends before that. */
int shard_file_read(const struct shard_file *file, void *out, size_t size, uint64_t offset,
                    struct error *err);
/* Read all of the file, and compare its checksum. -EIO: it is damaged. */
int shard_file_verify(const struct shard_file *file, const struct manifest_shard *told,
                      struct error *err);

#endif
