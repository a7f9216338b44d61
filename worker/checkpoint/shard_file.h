/* shard_file.h - a shard on the disk, whose header was found to be what was written. */
#ifndef WORKER_CHECKPOINT_SHARD_FILE_H
#define WORKER_CHECKPOINT_SHARD_FILE_H

#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/shard.h"

/* Before it is opened: fd -1 and all else zero. */
struct shard_file {
    char *path;
    int fd;
    struct shard shard; /* what the header says */
};

/* `told`: what the manifest says of it. -EIO: it is damaged; -EINVAL: its header lies; what the
 * disk says. It is to be closed, whatever comes of it. */
int shard_file_open(const char *folder, const struct manifest_shard *told, struct shard_file *file,
                    struct error *err);
void shard_file_close(struct shard_file *file);
/* Bytes from `offset` of the file. -EIO: there are fewer. */
int shard_file_read(const struct shard_file *file, void *out, size_t size, uint64_t offset,
                    struct error *err);
/* All of it, against its checksum. */
int shard_file_verify(const struct shard_file *file, const struct manifest_shard *told,
                      struct error *err);

#endif
