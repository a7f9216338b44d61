/* llm_c.c - reads and writes the header of llm.c's files of tokens. */
#include "worker/data/tokens.h"

#include "common/base/memory.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MAGIC_SIZE 8 /* magic and version */

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

void llm_c_header(uint64_t count, size_t width, unsigned char out[LLM_C_HEADER_SIZE])
{
    const struct kind *kind = &kinds[width == kinds[1].width];
    assert(count <= LLM_C_TOKENS_MAX && width == kind->width);
    memset(out, 0, LLM_C_HEADER_SIZE);
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

static const struct kind *find_kind(const unsigned char *header)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (read_int32(header) == kinds[i].magic && read_int32(header + 4) == kinds[i].version)
            return &kinds[i];
    return NULL;
}

static bool llm_c_recognise(const char *path)
{
    unsigned char head[MAGIC_SIZE];
    return file_head(path, head, sizeof head) == sizeof head && find_kind(head);
}

static int llm_c_open(const char *path, struct token_file *out, struct error *err)
{
    int rc = file_map(path, &out->file, err);
    if (rc < 0)
        return rc;
    const unsigned char *bytes = out->file.map;
    const struct kind *kind = out->file.size >= LLM_C_HEADER_SIZE ? find_kind(bytes) : NULL;
    if (!kind)
        return error_set(err, -EINVAL,
                         "'%s' has %zu bytes, llm.c's header alone has %d: it is "
                         "truncated",
                         path, out->file.size, LLM_C_HEADER_SIZE);
    size_t size = out->file.size - LLM_C_HEADER_SIZE;
    int64_t count = read_int32(bytes + 8);
    if (count < 0 || (uint64_t)count != size / kind->width || size % kind->width)
        return error_set(err, -EINVAL,
                         "'%s' says it has %" PRId64 " tokens of %zu bytes, but %zu bytes follow "
                         "its header",
                         path, count, kind->width, size);
    out->path = xstrdup(path);
    out->documents = DOCUMENTS_UNKNOWN;
    out->elements = (struct elements){bytes + LLM_C_HEADER_SIZE, kind->width, (uint64_t)count};
    return 0;
}

const struct data_format data_format_llm_c = {
    .name = "llm.c",
    .recognise = llm_c_recognise,
    .open = llm_c_open,
};
