/* tokenizer.c - the table of kinds, and what all of them have in common. */
#include "worker/tokenizer/tokenizer.h"

#include "common/base/memory.h"
#include "worker/data/files.h"
#include "worker/tokenizer/kind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct tokenizer_kind *const kinds[] = {&tokenizer_bytes, &tokenizer_bpe, NULL};

/* Larger than any that is known, of which some have 30 MiB. */
#define FILE_MAX ((size_t)256 << 20)
/* What a kind is given at a time. */
#define PART_MAX ((size_t)256 << 10)

static struct tokenizer *create(const struct tokenizer_kind *kind)
{
    struct tokenizer *tokenizer = xcalloc(1, sizeof *tokenizer);
    tokenizer->kind = kind;
    tokenizer->end = -1;
    return tokenizer;
}

void tokenizer_close(struct tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    if (tokenizer->kind->close)
        tokenizer->kind->close(tokenizer);
    vocabulary_finish(&tokenizer->vocabulary);
    free(tokenizer->path);
    free(tokenizer);
}

void tokenizer_open_bytes(bool end, struct tokenizer **out)
{
    *out = create(&tokenizer_bytes);
    for (int32_t byte = 0; byte < JOB_BYTE_VOCAB; byte++)
        vocabulary_set(&(*out)->vocabulary, byte, &(char){(char)byte}, 1);
    if (!end)
        return;
    (*out)->end = JOB_BYTE_VOCAB;
    vocabulary_set(&(*out)->vocabulary, JOB_BYTE_VOCAB, "", 0);
}

static int read_kind(const json_t *root, struct tokenizer **out, struct error *err)
{
    const json_t *type = json_object_get(json_object_get(root, "model"), "type");
    for (size_t i = 0; kinds[i]; i++) {
        if (!kinds[i]->is || !kinds[i]->is(root))
            continue;
        struct tokenizer *tokenizer = create(kinds[i]);
        int rc = kinds[i]->read(tokenizer, root, err);
        if (rc == 0)
            *out = tokenizer;
        else
            tokenizer_close(tokenizer);
        return rc;
    }
    return error_set(err, -EINVAL, "its model is of the type %.40s: BPE is supported",
                     json_is_string(type) ? json_string_value(type) : "null");
}

int tokenizer_parse(const char *text, size_t size, struct tokenizer **out, struct error *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, size, 0, &why);
    if (!root)
        return error_set(err, -EINVAL, "it is no JSON: line %d, %s", why.line, why.text);
    int rc = json_is_object(root) ? read_kind(root, out, err)
                                  : error_set(err, -EINVAL, "it is no object of keys and values");
    json_decref(root);
    return rc;
}

/* The file itself, or that of a folder; freed by the caller. */
static char *find_file(const char *path)
{
    struct stat status;
    bool folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    return folder ? xasprintf("%s/tokenizer.json", path) : xstrdup(path);
}

/* The last token of this name, since added ones come last; -1: there is none. */
static int32_t find_token(const struct tokenizer *tokenizer, const char *name)
{
    size_t size, length = strlen(name);
    int64_t id = tokenizer_size(tokenizer) - 1;
    for (; id >= 0; id--) {
        const char *there = tokenizer_name_of(tokenizer, id, &size);
        if (there && size == length && memcmp(there, name, size) == 0)
            break;
    }
    return (int32_t)id;
}

int tokenizer_set_end(struct tokenizer *tokenizer, const char *text, struct error *err)
{
    int32_t id = find_token(tokenizer, text);
    if (id < 0)
        return error_set(err, -EINVAL, "%s%s%s has no token '%.60s' to end texts with",
                         tokenizer->path ? "the tokenizer '" : "bytes",
                         tokenizer->path ? tokenizer->path : "", tokenizer->path ? "'" : "", text);
    tokenizer->end = id;
    return 0;
}

/* In a tokenizer_config.json, "eos_token" is a text, or has it as its content. It is not said there
 * of all tokenizers, and may name none. Lengths beyond all integers are common in such files. */
static int read_settings(struct tokenizer *tokenizer, struct error *err)
{
    json_error_t why;
    char *path = xasprintf("%.*stokenizer_config.json",
                           (int)(strrchr(tokenizer->path, '/')
                                     ? strrchr(tokenizer->path, '/') + 1 - tokenizer->path
                                     : 0),
                           tokenizer->path);
    json_t *root = json_load_file(path, JSON_DECODE_INT_AS_REAL, &why);
    const json_t *end = json_object_get(root, "eos_token");
    const char *text =
        json_string_value(json_is_object(end) ? json_object_get(end, "content") : end);
    int32_t id = text ? find_token(tokenizer, text) : -1;
    int rc =
        root || access(path, F_OK) != 0
            ? 0
            : error_set(err, -EINVAL, "'%s' is no JSON: line %d, %s", path, why.line, why.text);
    if (id >= 0)
        tokenizer->end = id;
    json_decref(root);
    free(path);
    return rc;
}

int tokenizer_open(const char *path, struct tokenizer **out, struct error *err)
{
    struct file file;
    char *name = find_file(path);
    int rc = file_map(name, &file, err);
    if (rc < 0) {
        free(name);
        return error_prefix(err, rc, "tokenizer");
    }
    rc = file.size > FILE_MAX
             ? error_set(err, -EFBIG, "%zu bytes are more than %zu", file.size, FILE_MAX)
             : tokenizer_parse(file.map, file.size, out, err);
    if (rc == 0) {
        (*out)->path = name;
        (*out)->bytes = file.size;
        (*out)->hash = file_hash(&file);
    }
    file_unmap(&file);
    if (rc < 0) {
        error_prefix(err, rc, "tokenizer '%s'", name);
        free(name);
        return rc;
    }
    rc = read_settings(*out, err);
    if (rc < 0) {
        tokenizer_close(*out);
        *out = NULL;
    }
    return rc;
}

int tokenizer_open_job(const struct job_config *job, struct tokenizer **out, struct error *err)
{
    *out = NULL;
    if (job_tokenizer(job) == JOB_BYTES)
        tokenizer_open_bytes(job_ends_texts(job), out);
    if (job_tokenizer(job) != JOB_FILE)
        return 0;
    int rc = tokenizer_open(job->data.tokenizer, out, err);
    if (rc == 0 && tokenizer_size(*out) > job->model.vocab) {
        rc = error_set(err, -EINVAL,
                       "the tokenizer '%s' has %" PRId64 " tokens, but model.vocab is %" PRId64,
                       tokenizer_path(*out), tokenizer_size(*out), job->model.vocab);
        tokenizer_close(*out);
        *out = NULL;
    }
    return rc;
}

const char *tokenizer_path(const struct tokenizer *tokenizer)
{
    return tokenizer->path;
}

struct data_file tokenizer_file(const struct tokenizer *tokenizer)
{
    return (struct data_file){xstrdup(tokenizer->path), tokenizer->bytes, tokenizer->hash};
}

int64_t tokenizer_size(const struct tokenizer *tokenizer)
{
    return (int64_t)tokenizer->vocabulary.size;
}

int32_t tokenizer_end(const struct tokenizer *tokenizer)
{
    return tokenizer->end;
}

const int32_t *tokenizer_before(const struct tokenizer *tokenizer, size_t *count)
{
    *count = tokenizer->before.count;
    return tokenizer->before.ids;
}

const int32_t *tokenizer_after(const struct tokenizer *tokenizer, size_t *count)
{
    *count = tokenizer->after.count;
    return tokenizer->after.ids;
}

const char *tokenizer_text(const struct tokenizer *tokenizer, int64_t id, size_t *size)
{
    return vocabulary_get(&tokenizer->vocabulary, id, size);
}

const char *tokenizer_name_of(const struct tokenizer *tokenizer, int64_t id, size_t *size)
{
    return tokenizer->kind->name_of ? tokenizer->kind->name_of(tokenizer, id, size)
                                    : tokenizer_text(tokenizer, id, size);
}

bool tokenizer_equal(const struct tokenizer *one, const struct tokenizer *other, int64_t *id)
{
    int64_t size =
        tokenizer_size(one) < tokenizer_size(other) ? tokenizer_size(one) : tokenizer_size(other);
    for (*id = 0; *id < size; (*id)++) {
        size_t a_size, b_size;
        const char *a = tokenizer_name_of(one, *id, &a_size);
        const char *b = tokenizer_name_of(other, *id, &b_size);
        if (a && b && (a_size != b_size || memcmp(a, b, a_size) != 0))
            return false;
    }
    *id = -1;
    return one->merges == other->merges;
}

/* JSON has no NUL, so it is a text. */
int tokenizer_json(const struct tokenizer *tokenizer, char **out, struct error *err)
{
    struct file file;
    if (!tokenizer->path) {
        *out = tokenizer->kind->print(tokenizer);
        return 0;
    }
    int rc = file_map(tokenizer->path, &file, err);
    if (rc < 0)
        return error_prefix(err, rc, "tokenizer");
    if (file.size == tokenizer->bytes && file_hash(&file) == tokenizer->hash) {
        *out = xcalloc(1, file.size + 1);
        memcpy(*out, file.map, file.size);
    } else {
        rc = error_set(err, -ESTALE, "tokenizer '%s': it has changed meanwhile", tokenizer->path);
    }
    file_unmap(&file);
    return rc;
}

struct encoder *encoder_create(const struct tokenizer *tokenizer, tokenizer_took_cb *took_cb,
                               void *data)
{
    struct encoder *encoder = xcalloc(1, sizeof *encoder);
    *encoder = (struct encoder){.tokenizer = tokenizer, .took_cb = took_cb, .data = data};
    if (tokenizer->kind->begin)
        tokenizer->kind->begin(encoder);
    return encoder;
}

void encoder_destroy(struct encoder *encoder)
{
    if (!encoder)
        return;
    if (encoder->tokenizer->kind->finish)
        encoder->tokenizer->kind->finish(encoder);
    free(encoder);
}

int encoder_add(struct encoder *encoder, const void *bytes, size_t size, struct error *err)
{
    const char *at = bytes;
    int rc = 0;
    while (rc == 0 && size > 0) {
        size_t part = size < PART_MAX ? size : PART_MAX;
        rc = encoder->tokenizer->kind->add(encoder, at, part, err);
        at += part;
        size -= part;
    }
    return rc;
}

int encoder_end(struct encoder *encoder, struct error *err)
{
    return encoder->tokenizer->kind->end ? encoder->tokenizer->kind->end(encoder, err) : 0;
}
