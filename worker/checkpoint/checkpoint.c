/* checkpoint.c - an index of the slices in all shards, and boxes put together from them; and
 * deleting, in the opposite order of writing. */
#include "worker/checkpoint/checkpoint.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "worker/checkpoint/shard.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* A slice, and the file that has it. */
struct found {
    const struct shard_slice *slice;
    const struct shard_file *file;
};

struct checkpoint {
    struct manifest manifest;
    struct shard_file *files; /* in the order of the manifest */
    struct found *index;      /* sorted by tensor and part */
    size_t index_count;
    char *scratch; /* room for one slice */
    size_t scratch_size;
};

static int compare_slice(const char *a, enum state_part part_a, const struct shard_slice *b)
{
    int order = strcmp(a, b->tensor);
    return order ? order : (int)part_a - (int)b->part;
}

static int compare_found(const void *a, const void *b)
{
    const struct found *first = a, *second = b;
    return compare_slice(first->slice->tensor, first->slice->part, second->slice);
}

static void make_index(struct checkpoint *checkpoint)
{
    size_t capacity = 0;
    for (size_t f = 0; f < checkpoint->manifest.shard_count; f++) {
        const struct shard_file *file = &checkpoint->files[f];
        for (size_t i = 0; i < file->shard.count; i++) {
            checkpoint->index = grow(checkpoint->index, checkpoint->index_count, &capacity,
                                     sizeof *checkpoint->index);
            checkpoint->index[checkpoint->index_count++] =
                (struct found){&file->shard.slices[i], file};
        }
    }
    if (checkpoint->index_count > 0)
        qsort(checkpoint->index, checkpoint->index_count, sizeof *checkpoint->index, compare_found);
}

int checkpoint_open(const char *folder, struct checkpoint **out, struct error *err)
{
    struct checkpoint *checkpoint = xcalloc(1, sizeof *checkpoint);
    int rc = manifest_read(folder, &checkpoint->manifest, err);
    size_t count = checkpoint->manifest.shard_count;
    checkpoint->files = xcalloc(count, sizeof *checkpoint->files);
    for (size_t i = 0; i < count; i++)
        checkpoint->files[i].fd = -1;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = shard_open(folder, &checkpoint->manifest.shards[i], &checkpoint->files[i], err);
    if (rc < 0) {
        checkpoint_close(checkpoint);
        return rc;
    }
    make_index(checkpoint);
    *out = checkpoint;
    return 0;
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    for (size_t i = 0; i < checkpoint->manifest.shard_count; i++)
        shard_close(&checkpoint->files[i]);
    manifest_finish(&checkpoint->manifest);
    free(checkpoint->files);
    free(checkpoint->index);
    free(checkpoint->scratch);
    free(checkpoint);
}

const struct manifest *checkpoint_manifest(const struct checkpoint *checkpoint)
{
    return &checkpoint->manifest;
}

int checkpoint_expect(const struct checkpoint *checkpoint, uint64_t step, const struct graph *graph,
                      struct error *err)
{
    const struct manifest_origin *origin = &checkpoint->manifest.origin;
    if (origin->step != step)
        return error_set(err, -EINVAL, "it is of step %" PRIu64 ", step %" PRIu64 " would be right",
                         origin->step, step);
    return manifest_compare(&checkpoint->manifest, graph, err);
}

/* Slices of one part of a tensor are adjacent in the index: returns their number, and sets
 * *first. */
static size_t find_slices(const struct checkpoint *checkpoint, const char *tensor,
                          enum state_part part, size_t *first)
{
    size_t low = 0, high = checkpoint->index_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_slice(tensor, part, checkpoint->index[middle].slice) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    *first = low;
    while (high < checkpoint->index_count &&
           compare_slice(tensor, part, checkpoint->index[high].slice) == 0)
        high++;
    return high - low;
}

/* Read the data of a slice and check it; *out is lent until the next call. */
static int read_slice(struct checkpoint *checkpoint, const struct found *found, const float **out,
                      struct error *err)
{
    const struct shard_slice *slice = found->slice;
    if (slice->bytes > checkpoint->scratch_size) {
        free(checkpoint->scratch);
        checkpoint->scratch_size = slice->bytes;
        checkpoint->scratch = malloc(slice->bytes);
    }
    if (!checkpoint->scratch) {
        checkpoint->scratch_size = 0;
        return error_set(err, -ENOBUFS, "no %" PRIu64 " bytes of memory to read a slice",
                         slice->bytes);
    }
    int rc = shard_read(found->file, checkpoint->scratch, slice->bytes,
                        found->file->shard.start + slice->offset, err);
    if (rc == 0 && XXH3_64bits(checkpoint->scratch, slice->bytes) != slice->checksum)
        rc = error_set(err, -EIO, "%s in '%s' is not what was written: it is damaged",
                       slice_name(slice->tensor, slice->part).text, found->file->path);
    *out = (const float *)(const void *)checkpoint->scratch;
    return rc;
}

/* If two slices held the same element, that could hide a missing one. */
static int check_apart(const struct found *found, size_t index, struct error *err)
{
    struct box both;
    for (size_t i = 0; i < index; i++)
        if (box_overlap(&found[i].slice->box, &found[index].slice->box, &both))
            return error_set(err, -EINVAL, "%s: slices in '%s' and '%s' overlap",
                             slice_name(found[i].slice->tensor, found[i].slice->part).text,
                             found[i].file->path, found[index].file->path);
    return 0;
}

int checkpoint_load(struct checkpoint *checkpoint, const char *tensor, enum state_part part,
                    const struct box *box, float *out, struct error *err)
{
    size_t first, count = find_slices(checkpoint, tensor, part, &first);
    const struct found *found = &checkpoint->index[first];
    int64_t missing = box_count(box);
    for (size_t i = 0; i < count && missing > 0; i++) {
        const struct shard_slice *slice = found[i].slice;
        struct box common;
        const float *data = NULL;
        if (slice->box.dims != box->dims)
            return error_set(err, -EINVAL, "%s has %d dims in '%s', %d would be right",
                             slice_name(tensor, part).text, slice->box.dims, found[i].file->path,
                             box->dims);
        int rc = check_apart(found, i, err);
        if (rc == 0 && !box_overlap(&slice->box, box, &common))
            continue;
        if (rc == 0)
            rc = read_slice(checkpoint, &found[i], &data, err);
        if (rc < 0)
            return rc;
        box_copy(&slice->box, data, box, out, &common);
        missing -= box_count(&common);
    }
    if (missing > 0)
        return error_set(
            err, -ENODATA, "%s: %lld of %lld elements are in no shard of the checkpoint",
            slice_name(tensor, part).text, (long long)missing, (long long)box_count(box));
    return 0;
}

/* Check without reading data that the slices do not overlap and make up the whole tensor. */
static int verify_tensor(const struct checkpoint *checkpoint, const struct manifest_tensor *tensor,
                         enum state_part part, struct error *err)
{
    size_t first, count = find_slices(checkpoint, tensor->name, part, &first);
    const struct found *found = &checkpoint->index[first];
    int64_t missing = box_count(&tensor->whole);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct box *box = &found[i].slice->box;
        struct box common;
        if (box->dims != tensor->whole.dims || !box_overlap(box, &tensor->whole, &common) ||
            !box_equal(box, &common))
            return error_set(err, -EINVAL, "%s: its slice in '%s' is no piece of the whole",
                             slice_name(tensor->name, part).text, found[i].file->path);
        rc = check_apart(found, i, err);
        missing -= box_count(box);
    }
    if (rc == 0 && missing > 0)
        rc = error_set(err, -ENODATA, "%s: %lld elements are in no shard",
                       slice_name(tensor->name, part).text, (long long)missing);
    return rc;
}

int checkpoint_verify(const char *folder, FILE *out, struct error *err)
{
    struct checkpoint *checkpoint = NULL;
    int rc = checkpoint_open(folder, &checkpoint, err);
    if (rc < 0)
        return rc;
    const struct manifest *manifest = &checkpoint->manifest;
    for (size_t i = 0; i < manifest->shard_count && rc == 0; i++) {
        const struct manifest_shard *shard = &manifest->shards[i];
        char size[32];
        rc = shard_verify(&checkpoint->files[i], shard, err);
        if (rc == 0 && out)
            fprintf(out, "%s  %s  xxh3 %016" PRIx64 "  %zu slices\n", shard->file,
                    units_print_bytes(size, sizeof size, (double)shard->size), shard->checksum,
                    checkpoint->files[i].shard.count);
    }
    for (size_t t = 0; t < manifest->tensor_count && rc == 0; t++)
        for (int part = 0; part < STATE_PARTS && rc == 0; part++)
            rc = verify_tensor(checkpoint, &manifest->tensors[t], (enum state_part)part, err);
    if (rc == 0 && out)
        fprintf(out,
                "%s: step %" PRIu64 " of %s, epoch %" PRIu64
                ", %zu tensors with their moments in %zu shards: whole and undamaged\n",
                folder, manifest->origin.step, manifest->origin.job, manifest->origin.epoch,
                manifest->tensor_count, manifest->shard_count);
    checkpoint_close(checkpoint);
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
