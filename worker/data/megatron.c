/* megatron.c - indexed datasets of Megatron-LM: PREFIX.bin has the tokens and nothing else,
 * PREFIX.idx says what they are. A path names them by either file, or by the prefix.
 *
 * The index is that of megatron/core/datasets/indexed_dataset.py there (_IndexWriter, the one that
 * preprocess_data.py uses), little-endian and without gaps:
 *
 *     "MMIDIDX\0\0"                  9 bytes
 *     version                        uint64, 1
 *     type of the tokens             uint8, a code
 *     sequences, document entries    uint64 each
 *     tokens of each sequence        int32 each
 *     byte at which each begins      int64 each
 *     document entries               int64 each: 0, then the sequence behind each document;
 *                                    the last is the number of sequences
 *     mode of each sequence          int8 each, in datasets that hold more than text
 *
 * Sequences follow each other in the .bin in their order, so it is one array of tokens, in which
 * documents end as they were written to end: with preprocess_data.py's --append-eod, in a token. */
#include "worker/data/tokens.h"

#include "common/base/memory.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAGIC "MMIDIDX\0" /* and the NUL that ends it here */
#define HEADER_SIZE 34

/* By their codes; only two of them can hold tokens. */
static const struct {
    const char *name;
    size_t token_width; /* 0: it holds no tokens */
} types[] = {
    {NULL, 0},    {"uint8", 0},   {"int8", 0},    {"int16", 0},  {"int32", 4},
    {"int64", 0}, {"float64", 0}, {"float32", 0}, {"uint16", 2},
};

struct index {
    const char *path, *bin_path;
    const unsigned char *lengths, *pointers, *documents; /* of each sequence, and of each entry */
    uint64_t sequences, entries;
    size_t width;    /* bytes per token */
    uint64_t tokens; /* of all sequences */
};

static uint64_t read_64(const unsigned char *at)
{
    uint64_t bits;
    memcpy(&bits, at, sizeof bits);
    return le64toh(bits);
}

static int32_t read_length(const struct index *index, uint64_t sequence)
{
    uint32_t bits;
    memcpy(&bits, index->lengths + sequence * sizeof bits, sizeof bits);
    return (int32_t)le32toh(bits);
}

static bool ends_with(const char *path, const char *end)
{
    size_t size = strlen(path), end_size = strlen(end);
    return size > end_size && strcmp(path + size - end_size, end) == 0;
}

/* PREFIX.bin or PREFIX.idx, of what a path names; freed by the caller. */
static char *name_file(const char *path, const char *end)
{
    bool whole = ends_with(path, ".bin") || ends_with(path, ".idx");
    return xasprintf("%.*s%s", (int)(strlen(path) - (whole ? strlen(end) : 0)), path, end);
}

static bool is_index(const char *path)
{
    char head[sizeof MAGIC];
    return file_head(path, head, sizeof head) == sizeof head &&
           memcmp(head, MAGIC, sizeof head) == 0;
}

/* A prefix is no file itself. */
static bool is_prefix(const char *path)
{
    struct stat status;
    if (ends_with(path, ".bin") || (stat(path, &status) == 0 && !S_ISDIR(status.st_mode)))
        return false;
    char *bin_path = name_file(path, ".bin");
    bool there = stat(bin_path, &status) == 0;
    free(bin_path);
    return there;
}

static bool megatron_recognise(const char *path)
{
    char *index_path = name_file(path, ".idx");
    bool recognised = ends_with(path, ".idx") || is_index(index_path) || is_prefix(path);
    free(index_path);
    return recognised;
}

static int read_header(struct index *index, const struct file *file, struct error *err)
{
    const unsigned char *bytes = file->map;
    if (file->size < sizeof MAGIC || memcmp(bytes, MAGIC, sizeof MAGIC) != 0)
        return error_set(err, -EINVAL,
                         "'%s' is no index of Megatron-LM's: it does not begin with MMIDIDX",
                         index->path);
    if (file->size < HEADER_SIZE)
        return error_set(err, -EINVAL,
                         "'%s' is truncated: it has %zu bytes, the header of Megatron-LM's index "
                         "alone has %d",
                         index->path, file->size, HEADER_SIZE);
    uint64_t version = read_64(bytes + 9);
    unsigned code = bytes[17];
    if (version != 1)
        return error_set(err, -EINVAL,
                         "'%s' has version %" PRIu64 " of Megatron-LM's index: 1 is supported",
                         index->path, version);
    const char *name = code < sizeof types / sizeof *types ? types[code].name : NULL;
    index->width = name ? types[code].token_width : 0;
    if (index->width == 0)
        return error_set(err, -EINVAL,
                         "'%s' says that its data is %s, code %u, which are no tokens: uint16, "
                         "code 8, or int32, code 4, would be",
                         index->path, name ? name : "of a type unknown here", code);
    index->sequences = read_64(bytes + 18);
    index->entries = read_64(bytes + 26);
    return 0;
}

/* Find the arrays behind the header: they take all that is there. */
static int find_arrays(struct index *index, const struct file *file, struct error *err)
{
    uint64_t room = file->size - HEADER_SIZE;
    if (index->sequences > room / 12 || index->entries > (room - 12 * index->sequences) / 8)
        return error_set(err, -EINVAL,
                         "'%s' is truncated: its %zu bytes have no room for the %" PRIu64
                         " sequences and %" PRIu64 " document entries that it counts",
                         index->path, file->size, index->sequences, index->entries);
    index->lengths = (const unsigned char *)file->map + HEADER_SIZE;
    index->pointers = index->lengths + 4 * index->sequences;
    index->documents = index->pointers + 8 * index->sequences;
    uint64_t rest = room - 12 * index->sequences - 8 * index->entries;
    if (rest == 0)
        return 0;
    return error_set(err, -EINVAL,
                     "'%s' has %" PRIu64 " bytes more than its %" PRIu64 " sequences and %" PRIu64
                     " document entries take: %s",
                     index->path, rest, index->sequences, index->entries,
                     rest == index->sequences ? "modes of sequences, of a dataset of more than text"
                                              : "it is damaged");
}

/* Whether the sequences follow each other, up to the end of the .bin. */
static int check_sequences(struct index *index, uint64_t bin_size, struct error *err)
{
    uint64_t end = 0;
    for (uint64_t i = 0; i < index->sequences; i++) {
        uint64_t pointer = read_64(index->pointers + 8 * i);
        int32_t length = read_length(index, i);
        if (length < 0)
            return error_set(err, -EINVAL,
                             "'%s' is damaged: sequence %" PRIu64 " has %" PRId32 " tokens",
                             index->path, i, length);
        if (pointer != end)
            return error_set(err, -EINVAL,
                             "'%s' is damaged: sequence %" PRIu64 " begins at byte %" PRIu64
                             " of '%s', the one before it ends at %" PRIu64,
                             index->path, i, pointer, index->bin_path, end);
        index->tokens += (uint64_t)length;
        end = index->tokens * index->width;
    }
    if (end == bin_size)
        return 0;
    return error_set(
        err, -EINVAL,
        "the sequences of '%s' have %" PRIu64 " bytes, but '%s' has %" PRIu64 ": it is %s, or "
        "the .bin of another index",
        index->path, end, index->bin_path, bin_size, bin_size < end ? "truncated" : "damaged");
}

/* Documents follow each other too: each ends behind the one before it, and the last one behind the
 * last sequence, as Megatron-LM itself insists. */
static int check_documents(const struct index *index, struct error *err)
{
    uint64_t end = 0;
    for (uint64_t i = 0; i < index->entries; i++) {
        uint64_t entry = read_64(index->documents + 8 * i);
        if (entry < end || entry > index->sequences)
            return error_set(err, -EINVAL,
                             "'%s' is damaged: document entry %" PRIu64 " is sequence %" PRIu64
                             ", the one before it is %" PRIu64 ", and there are %" PRIu64
                             " sequences",
                             index->path, i, entry, end, index->sequences);
        end = entry;
    }
    if (index->entries > 0 && end == index->sequences)
        return 0;
    return error_set(err, -EINVAL,
                     "'%s' is damaged: its %" PRIu64 " document entries end at sequence %" PRIu64
                     ", and there are %" PRIu64 " sequences",
                     index->path, index->entries, end, index->sequences);
}

static int map_half(const char *path, const char *other, struct file *out, struct error *err)
{
    int rc = file_map(path, out, err);
    return rc == -ENOENT ? error_set(err, rc,
                                     "'%s' is not there, and a dataset of Megatron-LM's needs both "
                                     "it and '%s'",
                                     path, other)
                         : rc;
}

static int megatron_open(const char *path, struct token_file *out, struct error *err)
{
    out->path = name_file(path, ".bin");
    out->index_path = name_file(path, ".idx");
    struct index index = {.path = out->index_path, .bin_path = out->path};
    int rc = map_half(out->index_path, out->path, &out->index, err);
    if (rc == 0)
        rc = map_half(out->path, out->index_path, &out->file, err);
    if (rc == 0)
        rc = read_header(&index, &out->index, err);
    if (rc == 0)
        rc = find_arrays(&index, &out->index, err);
    if (rc == 0)
        rc = check_sequences(&index, out->file.size, err);
    if (rc == 0)
        rc = check_documents(&index, err);
    if (rc < 0)
        return rc;
    out->documents = index.entries - 1;
    out->elements = (struct elements){out->file.map, index.width, index.tokens};
    return 0;
}

const struct data_format data_format_megatron = {
    .name = "Megatron-LM",
    .recognise = megatron_recognise,
    .open = megatron_open,
};
