/* raw.c - files that are tokens from the first byte to the last, as nanoGPT's train.bin and
 * val.bin (data/openwebtext/prepare.py there: uint16, as numpy writes it on little-endian
 * machines). Any bytes could be such a file, so the job has to say that it is one. */
#include "worker/data/format.h"

#include "common/base/memory.h"

#include <errno.h>

static int raw_open(const char *path, size_t width, struct token_file *out, struct error *err)
{
    int rc = file_map(path, &out->file, err);
    if (rc < 0)
        return rc;
    if (out->file.size % width)
        return error_set(err, -EINVAL,
                         "'%s' has %zu bytes, which are no tokens of %zu bytes each: it is "
                         "truncated, or of another format",
                         path, out->file.size, width);
    out->path = xstrdup(path);
    out->documents = DOCUMENTS_UNKNOWN;
    out->elements = (struct elements){out->file.map, width, out->file.size / width};
    return 0;
}

static int uint16_open(const char *path, struct token_file *out, struct error *err)
{
    return raw_open(path, sizeof(uint16_t), out, err);
}

static int uint32_open(const char *path, struct token_file *out, struct error *err)
{
    return raw_open(path, sizeof(uint32_t), out, err);
}

const struct data_format data_format_uint16 = {
    .name = "uint16",
    .told = JOB_FORMAT_UINT16,
    .open = uint16_open,
};

const struct data_format data_format_uint32 = {
    .name = "uint32",
    .told = JOB_FORMAT_UINT32,
    .open = uint32_open,
};
