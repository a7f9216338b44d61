/* tokens.c - reads and checks files of token ids. */
#include "worker/data/tokens.h"

#include "worker/data/format.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct kind {
    int32_t magic, version;
    size_t width; /* bytes per token */
};

static const struct kind kinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};

static void write_int32(unsigned char *at, int32_t value)
{
    uint32_t bits = htole32((uint32_t)value);
    memcpy(at, &bits, sizeof bits);
}

void tokens_header(uint64_t count, size_t width, unsigned char out[TOKENS_HEADER_SIZE])
{
    const struct kind *kind = &kinds[width == kinds[1].width];
    assert(count <= TOKENS_MAX && width == kind->width);
    memset(out, 0, TOKENS_HEADER_SIZE);
    write_int32(out, kind->magic);
    write_int32(out + 4, kind->version);
    write_int32(out + 8, (int32_t)count);
}

static int32_t read_int32(const unsigned char *at)
{
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    return (int32_t)le32toh(bits);
}

static uint32_t read_token(const unsigned char *at, size_t width)
{
    uint16_t narrow;
    if (width == 4)
        return (uint32_t)read_int32(at);
    memcpy(&narrow, at, sizeof narrow);
    return le16toh(narrow);
}

static const struct kind *find_kind(const struct file *file)
{
    if (file->size < TOKENS_HEADER_SIZE)
        return NULL;
    const unsigned char *header = file->map;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (read_int32(header) == kinds[i].magic && read_int32(header + 4) == kinds[i].version)
            return &kinds[i];
    return NULL;
}

/* Check the header against the file's size, and every token against the vocabulary. */
static int check_file(const struct file *file, const struct kind *kind, const char *path,
                      int64_t vocab, struct error *err)
{
    const unsigned char *bytes = file->map;
    int64_t count = read_int32(bytes + 8);
    uint64_t there = (file->size - TOKENS_HEADER_SIZE) / kind->width;
    if (count < 0 || (uint64_t)count != there || (file->size - TOKENS_HEADER_SIZE) % kind->width)
        return error_set(err, -EINVAL,
                         "'%s' says it has %" PRId64 " tokens of %zu bytes, but %zu bytes follow "
                         "its header",
                         path, count, kind->width, file->size - TOKENS_HEADER_SIZE);
    for (uint64_t i = 0; i < there; i++) {
        uint32_t token = read_token(bytes + TOKENS_HEADER_SIZE + i * kind->width, kind->width);
        if (token >= vocab)
            return error_set(err, -ERANGE,
                             "token %" PRIu64 " of '%s' is %" PRIu32
                             ", but model.vocab is %" PRId64,
                             i, path, token, vocab);
    }
    return 0;
}

static int add_file(struct files *files, const char *path, int64_t vocab, struct error *err)
{
    struct file file;
    int rc = file_map(path, &file, err);
    if (rc < 0)
        return rc;
    const struct kind *kind = find_kind(&file);
    if (!kind)
        rc = error_set(err, -EINVAL, "'%s' is no token file (llm.c's .bin)", path);
    else if (files->width && files->width != kind->width)
        rc = error_set(err, -EINVAL, "'%s' has tokens of %zu bytes, the files before it of %zu",
                       path, kind->width, files->width);
    else
        rc = check_file(&file, kind, path, vocab, err);
    if (rc < 0) {
        file_unmap(&file);
        return rc;
    }
    if (!files->width)
        files_init(files, kind->width);
    files_append(files, file, path, TOKENS_HEADER_SIZE);
    return 0;
}

static int tokens_open(struct files *files, const struct texts *paths, int64_t vocab,
                       struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < paths->count; i++)
        rc = add_file(files, paths->items[i], vocab, err);
    return rc;
}

static void tokens_widen(const struct files *files, const void *elements, uint64_t count,
                         int32_t *out)
{
    const unsigned char *bytes = elements;
    for (uint64_t i = 0; i < count; i++)
        out[i] = (int32_t)read_token(bytes + i * files->width, files->width);
}

const struct data_format data_format_tokens = {
    .key = "tokens",
    .paths = offsetof(struct job_data, tokens),
    .open = tokens_open,
    .widen = tokens_widen,
};
