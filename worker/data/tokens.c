/* tokens.c - the table of formats, the rows that have nothing to read but numbers, what is known of
 * files that are none of these, and the check that all tokens are in the vocabulary. */
#include "worker/data/tokens.h"

#include "common/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Files that are tokens from the first byte to the last, as nanoGPT's train.bin and val.bin
 * (data/openwebtext/prepare.py there: uint16, as numpy writes it on little-endian machines). Any
 * bytes could be such a file, so the job has to say that it is one. */
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

static const struct data_format format_uint16 = {
    .name = "uint16",
    .told = JOB_FORMAT_UINT16,
    .open = uint16_open,
};

static const struct data_format format_uint32 = {
    .name = "uint32",
    .told = JOB_FORMAT_UINT32,
    .open = uint32_open,
};

/* Those that files tell are asked in this order. */
static const struct data_format *const formats[] = {&data_format_llm_c, &data_format_megatron,
                                                    &format_uint16, &format_uint32, NULL};

static const struct data_format *find_recognised(const char *path)
{
    for (size_t i = 0; formats[i]; i++)
        if (formats[i]->recognise && formats[i]->recognise(path))
            return formats[i];
    return NULL;
}

static const struct data_format *find_told(enum job_format told)
{
    for (size_t i = 0; formats[i]; i++)
        if (told != JOB_FORMAT_AUTO && formats[i]->told == told)
            return formats[i];
    return NULL;
}

/* What other tools' files begin with, each so long that hardly any tokens do; and what to do about
 * them. Read as bare tokens, they would be nonsense that nobody notices. */
static const struct foreign {
    size_t offset, size;
    const char *bytes, *name, *remedy;
} foreigns[] = {
#define AT(offset, bytes) offset, sizeof(bytes) - 1, bytes
    {AT(0, "\x93NUMPY"), "an array of numpy's (.npy)",
     "numpy.load(FILE).tofile(OTHER) writes its numbers alone"},
    {AT(0, "PK\3\4"), "a zip archive, as numpy's .npz and PyTorch's .pt are",
     "write the numbers in it alone, with tofile() of numpy"},
    {AT(0, "PK\5\6"), "an empty zip archive", "name a file that has tokens"},
    {AT(0, "\x1f\x8b\x08"), "compressed by gzip", "gunzip it first"},
    {AT(0, "\x28\xb5\x2f\xfd"), "compressed by zstd", "unzstd it first"},
    {AT(0, "\xfd\x37zXZ\0"), "compressed by xz", "unxz it first"},
    {AT(4, "1AY&SY"), "compressed by bzip2", "bunzip2 it first"},
    {AT(0, "\x04\x22\x4d\x18"), "compressed by lz4", "unlz4 it first"},
    {AT(0, "7z\xbc\xaf\x27\x1c"), "a 7z archive", "unpack it first"},
    {AT(257, "ustar"), "a tar archive", "unpack it first"},
    {AT(0, "LITPKDS"), "a packed dataset of LitGPT's", "write its tokens alone, with tofile()"},
    {AT(0, "MMIDIDX\0\0"), "an index of Megatron-LM's", "give it the name of its .bin, with .idx"},
    {AT(0, "TNTIDX\0\0"), "an index of fairseq's", "name what Megatron-LM's newer tools write"},
    {AT(0, "\x88\xd8\x34\x01"), "a file of llm.c's in another version", "version 1 is supported"},
    {AT(0, "\xa1\xd9\x34\x01"), "a file of llm.c's in another version", "version 7 is supported"},
    {AT(0, "\x89HDF\r\n\x1a\n"), "an HDF5 file", "write its tokens alone, with tofile()"},
    {AT(0, "PAR1"), "a Parquet file", "write its tokens alone, with tofile() of numpy"},
    {AT(0, "ARROW1\0\0"), "an Arrow file", "write its tokens alone, with tofile() of numpy"},
    {AT(0, "SQLite format 3\0"), "an SQLite database", "write its tokens alone"},
    {AT(0, "\x80\4\x95"), "a pickle", "write its tokens alone, with tofile() of numpy"},
    {AT(0, "\x80\5\x95"), "a pickle", "write its tokens alone, with tofile() of numpy"},
    {AT(5, "\0\0\0{\""), "a safetensors file", "write its tokens alone, with tofile() of numpy"},
#undef AT
};

#define HEAD_SIZE 512
#define TEXT_SIZE 64 /* of so many printable bytes hardly any are tokens */

static bool is_text(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((bytes[i] < ' ' && !memchr("\t\n\r", bytes[i], 3)) || bytes[i] > '~')
            return false;
    return size >= TEXT_SIZE;
}

/* NULL: it could be tokens. */
static const struct foreign *find_foreign(const char *path)
{
    static const struct foreign text = {.name = "a text",
                                        .remedy = "'gimbal data pack' makes tokens of texts"};
    unsigned char head[HEAD_SIZE];
    size_t size = file_head(path, head, sizeof head);
    for (size_t i = 0; i < sizeof foreigns / sizeof *foreigns; i++) {
        const struct foreign *foreign = &foreigns[i];
        if (size >= foreign->offset + foreign->size &&
            memcmp(head + foreign->offset, foreign->bytes, foreign->size) == 0)
            return foreign;
    }
    return is_text(head, size) ? &text : NULL;
}

static int refuse_foreign(const char *path, const struct foreign *foreign, struct error *err)
{
    return error_set(err, -EINVAL, "'%s' is %s, and no tokens from its first byte on: %s", path,
                     foreign->name, foreign->remedy);
}

/* A path that cannot be read at all says more than that its format is unknown. */
static int refuse_unknown(const char *path, struct error *err)
{
    struct file file;
    int rc = file_map(path, &file, err);
    if (rc < 0)
        return rc;
    file_unmap(&file);
    return error_set(err, -EINVAL,
                     "'%s' has no header that tells its format: if it is tokens from its first "
                     "byte on, as nanoGPT's train.bin, format: uint16 or uint32 says so; a .bin "
                     "of Megatron-LM's has its .idx beside it",
                     path);
}

/* Read as bare tokens, a header would be nonsense that nobody notices. */
static int refuse_told(const char *path, const struct data_format *told,
                       const struct data_format *found, struct error *err)
{
    return error_set(err, -EINVAL,
                     "'%s' is a file of %s's format, which tells how it is read: format: %s is for "
                     "files without, leave it out",
                     path, found->name, told->name);
}

int token_file_open(const char *path, enum job_format told, struct token_file *out,
                    const struct data_format **format, struct error *err)
{
    const struct data_format *found = find_recognised(path), *said = find_told(told);
    *out = (struct token_file){0};
    if (found && said)
        return refuse_told(path, said, found, err);
    const struct foreign *foreign = found ? NULL : find_foreign(path);
    if (foreign)
        return refuse_foreign(path, foreign, err);
    *format = found ? found : said;
    return *format ? (*format)->open(path, out, err) : refuse_unknown(path, err);
}

void token_file_finish(struct token_file *file)
{
    file_unmap(&file->file);
    file_unmap(&file->index);
    free(file->path);
    free(file->index_path);
    *file = (struct token_file){0};
}

int token_file_check(const struct token_file *file, struct token_limit limit, struct error *err)
{
    uint32_t smallest, largest;
    elements_range(file->elements, &smallest, &largest);
    if (largest < limit.size)
        return 0;
    for (uint64_t i = 0; i < file->elements.count; i++) {
        uint32_t token = elements_at(file->elements, i);
        if (token >= limit.size)
            return error_set(err, -ERANGE,
                             "token %" PRIu64 " of '%s' is %" PRIu32 ", but %s is %" PRId64, i,
                             file->path, token, limit.what, limit.size);
    }
    return 0;
}

static int add_file(struct files *files, const char *path, enum job_format told,
                    struct token_limit limit, struct error *err)
{
    struct token_file file;
    const struct data_format *format;
    int rc = token_file_open(path, told, &file, &format, err);
    if (rc == 0)
        rc = token_file_check(&file, limit, err);
    if (rc == 0 && file.elements.count) {
        files_append(files, file.file, file.path, file.elements);
        file.file = (struct file){0};
        if (file.index_path) {
            files_append(files, file.index, file.index_path, (struct elements){0});
            file.index = (struct file){0};
        }
    }
    token_file_finish(&file);
    return rc;
}

int tokens_open(struct files *files, const struct texts *paths, enum job_format told,
                struct token_limit limit, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < paths->count; i++)
        rc = add_file(files, paths->items[i], told, limit, err);
    return rc;
}
