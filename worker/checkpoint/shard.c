/* shard.c - prints, parses, writes and reads shards.
 *
 * What is parsed may come from anywhere: every number is checked against the data before it is
 * used, and slices that overlap, leave a gap or lie beyond the end are refused. A shard is written
 * under another name, made durable and renamed, and the rename is made durable too, so that its
 * name never means half of it. Of a shard that is opened, nothing is used before it was checked:
 * its size, the length and checksum of its header, then the header itself. */
#include "worker/checkpoint/shard.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "worker/checkpoint/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define ELEMENT 4 /* bytes of an f32 */
#define FORMAT "gimbal-1"

static const struct {
    const char *name, *suffix, *words;
} state_parts[STATE_PARTS] = {
    [STATE_WEIGHT] = {"weight", "", "weight"},
    [STATE_FIRST] = {"exp_avg", ".exp_avg", "first moment of"},
    [STATE_SECOND] = {"exp_avg_sq", ".exp_avg_sq", "second moment of"},
};

struct slice_name slice_name(const char *tensor, enum state_part part)
{
    struct slice_name name;
    snprintf(name.text, sizeof name.text, "%s '%.100s'", state_parts[part].words, tensor);
    return name;
}

static json_t *print_entry(const struct shard_slice *slice)
{
    int64_t shape[DIMS_MAX];
    for (int i = 0; i < slice->box.dims; i++)
        shape[i] = box_length(&slice->box, i);
    return safetensors_entry(ELEMENT_F32, shape, slice->box.dims, slice->offset, slice->bytes);
}

static json_t *print_place(const struct shard_slice *slice)
{
    char checksum[20];
    snprintf(checksum, sizeof checksum, "%016" PRIx64, slice->checksum);
    json_t *low = json_array();
    for (int i = 0; i < slice->box.dims; i++)
        json_array_append_new(low, json_integer(slice->box.low[i]));
    return json_pack("{s:s, s:s, s:o, s:s}", "tensor", slice->tensor, "part",
                     state_parts[slice->part].name, "low", low, "checksum", checksum);
}

char *shard_print(const struct shard_slice *slices, size_t count, size_t *size)
{
    json_t *root = json_object(), *places = json_object();
    for (size_t i = 0; i < count; i++) {
        char *name = xasprintf("%s%s", slices[i].tensor, state_parts[slices[i].part].suffix);
        json_object_set_new(root, name, print_entry(&slices[i]));
        json_object_set_new(places, name, print_place(&slices[i]));
        free(name);
    }
    char *text = json_dumps(places, JSON_COMPACT);
    json_object_set_new(root, "__metadata__",
                        json_pack("{s:s, s:s}", "format", FORMAT, "slices", text));
    free(text);
    char *json = json_dumps(root, JSON_COMPACT);
    json_decref(places);
    json_decref(root);
    char *out = safetensors_frame(json, size);
    free(json);
    return out;
}

static int find_part(const char *name)
{
    for (int i = 0; i < STATE_PARTS; i++)
        if (strcmp(state_parts[i].name, name) == 0)
            return i;
    return -1;
}

/* Size of a box of these lengths; false if it exceeds `most`. */
static bool count_bytes(const struct box *box, uint64_t most, uint64_t *bytes)
{
    *bytes = ELEMENT;
    for (int i = 0; i < box->dims; i++)
        if (__builtin_mul_overflow(*bytes, (uint64_t)box_length(box, i), bytes))
            return false;
    return *bytes <= most;
}

static int parse_box(const char *name, const json_t *shape, const json_t *low, struct box *box,
                     struct error *err)
{
    size_t dims = json_array_size(shape);
    if (!json_is_array(shape) || !json_is_array(low) || dims > DIMS_MAX ||
        json_array_size(low) != dims)
        return error_set(err, -EINVAL, "%.100s: shape and low are not lists of up to %d numbers",
                         name, DIMS_MAX);
    box->dims = (int)dims;
    for (size_t i = 0; i < dims; i++) {
        const json_t *from = json_array_get(low, i), *length = json_array_get(shape, i);
        box->low[i] = json_integer_value(from);
        if (!json_is_integer(from) || !json_is_integer(length) || box->low[i] < 0 ||
            json_integer_value(length) <= 0 ||
            __builtin_add_overflow(box->low[i], (int64_t)json_integer_value(length), &box->high[i]))
            return error_set(err, -EINVAL, "%.100s: dim %zu is no piece of a tensor", name, i);
    }
    return 0;
}

static int parse_slice(const char *name, json_t *entry, json_t *place, uint64_t bytes,
                       struct shard_slice *out, struct error *err)
{
    const char *dtype, *tensor, *part, *checksum;
    json_t *shape, *low;
    json_int_t begin, end;
    uint64_t needed;
    if (json_unpack(entry, "{s:s, s:o, s:[I, I!]}", "dtype", &dtype, "shape", &shape,
                    "data_offsets", &begin, &end) < 0)
        return error_set(err, -EINVAL, "%.100s: no dtype, shape and data_offsets", name);
    if (strcmp(dtype, "F32") != 0)
        return error_set(err, -EINVAL, "%.100s: its dtype is %.16s, F32 would be right", name,
                         dtype);
    if (json_unpack(place, "{s:s, s:s, s:o, s:s}", "tensor", &tensor, "part", &part, "low", &low,
                    "checksum", &checksum) < 0 ||
        find_part(part) < 0)
        return error_set(err, -EINVAL, "%.100s: __metadata__.slices does not say where it lies",
                         name);
    int rc = parse_box(name, shape, low, &out->box, err);
    if (rc < 0)
        return rc;
    if (begin < 0 || end < begin || (uint64_t)end > bytes)
        return error_set(err, -EINVAL,
                         "%.100s: bytes %" PRId64 " to %" PRId64
                         " lie outside of the data, %" PRIu64 " bytes",
                         name, (int64_t)begin, (int64_t)end, bytes);
    if (!count_bytes(&out->box, bytes, &needed) || needed != (uint64_t)(end - begin))
        return error_set(err, -EINVAL, "%.100s: its shape and its %" PRId64 " bytes disagree", name,
                         (int64_t)(end - begin));
    out->tensor = xstrdup(tensor);
    out->part = (enum state_part)find_part(part);
    out->offset = (uint64_t)begin;
    out->bytes = needed;
    out->checksum = strtoull(checksum, NULL, 16);
    return 0;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct shard_slice *first = a, *second = b;
    return (first->offset > second->offset) - (first->offset < second->offset);
}

static int check_offsets(struct shard *shard, struct error *err)
{
    uint64_t end = 0;
    qsort(shard->slices, shard->count, sizeof *shard->slices, compare_offsets);
    for (size_t i = 0; i < shard->count; i++) {
        const struct shard_slice *slice = &shard->slices[i];
        if (slice->offset != end)
            return error_set(err, -EINVAL,
                             "%s begins at byte %" PRIu64 " of the data, %s byte %" PRIu64
                             ", where the one before it ends",
                             slice_name(slice->tensor, slice->part).text, slice->offset,
                             slice->offset < end ? "before" : "beyond", end);
        end += slice->bytes;
    }
    if (end != shard->bytes)
        return error_set(err, -EINVAL,
                         "its tensors are %" PRIu64 " bytes, %" PRIu64 " are in the file", end,
                         shard->bytes);
    return 0;
}

static int parse_slices(json_t *root, json_t *places, struct shard *out, struct error *err)
{
    const char *name;
    json_t *entry;
    size_t capacity = 0;
    int rc = 0;
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        out->slices = grow(out->slices, out->count, &capacity, sizeof *out->slices);
        rc = parse_slice(name, entry, json_object_get(places, name), out->bytes,
                         &out->slices[out->count], err);
        if (rc < 0)
            return rc;
        out->count++;
    }
    return check_offsets(out, err);
}

int shard_parse(const char *json, size_t length, uint64_t bytes, struct shard *out,
                struct error *err)
{
    json_error_t error;
    const char *format = "", *slices;
    json_t *root = json_loadb(json, length, JSON_REJECT_DUPLICATES, &error), *places = NULL;
    int rc = 0;
    *out = (struct shard){.start = SAFETENSORS_LENGTH_BYTES + length, .bytes = bytes};
    if (!root || json_unpack(root, "{s:{s:s, s:s}}", "__metadata__", "format", &format, "slices",
                             &slices) < 0)
        rc = error_set(err, -EINVAL, "its header is not one of a checkpoint: %s",
                       root ? "no __metadata__ with format and slices" : error.text);
    else if (strcmp(format, FORMAT) != 0)
        rc = error_set(err, -EINVAL, "its format is '%.40s', '%s' would be right", format, FORMAT);
    else if (!(places = json_loads(slices, JSON_REJECT_DUPLICATES, &error)))
        rc = error_set(err, -EINVAL, "__metadata__.slices: %s", error.text);
    if (rc == 0)
        rc = parse_slices(root, places, out, err);
    json_decref(places);
    json_decref(root);
    if (rc < 0)
        shard_finish(out);
    return rc;
}

void shard_finish(struct shard *shard)
{
    for (size_t i = 0; i < shard->count; i++)
        free(shard->slices[i].tensor);
    free(shard->slices);
    *shard = (struct shard){0};
}

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
static int publish_draft(const char *draft, const char *path, const char *folder)
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

int shard_write(const char *folder, int rank, struct shard_slice *slices, size_t count,
                const void *data, struct manifest_shard *out, struct error *err)
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
        rc = publish_draft(draft, path, folder);
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

#define VERIFY_BYTES ((size_t)1 << 20)

int shard_read(const struct shard_file *file, void *out, size_t size, uint64_t offset,
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
                 : shard_read(file, prefix, sizeof prefix, 0, err);
    if (rc < 0)
        return rc;
    if (!safetensors_length(prefix, told->size, length))
        return error_set(err, -EINVAL,
                         "'%s' claims a header of %" PRIu64 " bytes: at most %" PRIu64
                         " can be here",
                         file->path, *length,
                         told->size - SAFETENSORS_LENGTH_BYTES < SAFETENSORS_HEADER_MAX
                             ? told->size - SAFETENSORS_LENGTH_BYTES
                             : SAFETENSORS_HEADER_MAX);
    char *header = xcalloc(1, SAFETENSORS_LENGTH_BYTES + *length + 1);
    rc = shard_read(file, header, SAFETENSORS_LENGTH_BYTES + *length, 0, err);
    if (rc == 0 && XXH3_64bits(header, SAFETENSORS_LENGTH_BYTES + *length) != told->header)
        rc = error_set(err, -EIO, "the header of '%s' is not what was written: it is damaged",
                       file->path);
    if (rc < 0)
        free(header);
    else
        *out = header;
    return rc;
}

int shard_open(const char *folder, const struct manifest_shard *told, struct shard_file *file,
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

void shard_close(struct shard_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    shard_finish(&file->shard);
    free(file->path);
}

int shard_verify(const struct shard_file *file, const struct manifest_shard *told,
                 struct error *err)
{
    char *bytes = xcalloc(1, VERIFY_BYTES);
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    int rc = 0;
    for (uint64_t done = 0; done < told->size && rc == 0;) {
        size_t size = told->size - done < VERIFY_BYTES ? told->size - done : VERIFY_BYTES;
        rc = shard_read(file, bytes, size, done, err);
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
