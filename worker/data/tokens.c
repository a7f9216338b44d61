/* tokens.c - the table of formats, the rows that have nothing to read but numbers, and the check
 * that all tokens are in the vocabulary. */
#include "worker/data/tokens.h"

#include "common/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

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

int token_file_check(const struct token_file *file, int64_t limit, const char *what,
                     struct error *err)
{
    uint32_t smallest, largest;
    elements_range(file->elements, &smallest, &largest);
    if (largest < limit)
        return 0;
    for (uint64_t i = 0; i < file->elements.count; i++) {
        uint32_t token = elements_at(file->elements, i);
        if (token >= limit)
            return error_set(err, -ERANGE,
                             "token %" PRIu64 " of '%s' is %" PRIu32 ", but %s is %" PRId64, i,
                             file->path, token, what, limit);
    }
    return 0;
}

static int add_file(struct files *files, const char *path, enum job_format told, int64_t vocab,
                    struct error *err)
{
    struct token_file file;
    const struct data_format *format;
    int rc = token_file_open(path, told, &file, &format, err);
    if (rc == 0)
        rc = token_file_check(&file, vocab, "model.vocab", err);
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

int tokens_open(struct files *files, const struct texts *paths, enum job_format told, int64_t vocab,
                struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < paths->count; i++)
        rc = add_file(files, paths->items[i], told, vocab, err);
    return rc;
}
