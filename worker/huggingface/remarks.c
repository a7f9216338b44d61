/* remarks.c - what a folder of weights has besides its weights: a vocabulary, and a tokenizer. If
 * the job's are others, training works, but begins with a model that knows nothing of its data. */
#include "worker/huggingface/remarks.h"

#include "common/base/memory.h"
#include "common/base/text.h"
#include "worker/data/files.h"
#include "worker/huggingface/tensor_files.h"

#include <inttypes.h>
#include <stdlib.h>

/* Of padded rows, no token of the data is one. */
static char *remark_rows(int64_t theirs, int64_t ours)
{
    if (theirs <= ours)
        return NULL;
    return xasprintf("its vocabulary has %" PRId64 " tokens, and the job's model %" PRId64
                     ": the last %" PRId64 " are left out",
                     theirs, ours, theirs - ours);
}

#define NAME_SHOWN 40 /* bytes */

static char *print_token(const struct tokenizer *tokenizer, int64_t id)
{
    size_t size;
    const char *name = tokenizer_name_of(tokenizer, id, &size);
    return text_clean(name, size < NAME_SHOWN ? size : NAME_SHOWN);
}

static char *remark_other(const char *folder, const struct tokenizer *theirs,
                          const struct tokenizer *ours)
{
    int64_t id;
    if (tokenizer_equal(theirs, ours, &id))
        return NULL;
    char *there = print_token(theirs, id < 0 ? 0 : id), *here = print_token(ours, id < 0 ? 0 : id);
    char *which = id < 0
                      ? xstrdup("its merges are others")
                      : xasprintf("token %" PRId64 " is '%s' there and '%s' here", id, there, here);
    char *remark =
        xasprintf("its tokenizer is not that of the data (%s), so that its model does not "
                  "know these tokens: 'gimbal data pack --tokenizer %s' makes those that "
                  "it knows",
                  which, folder);
    free(which);
    free(there);
    free(here);
    return remark;
}

/* Byte by byte, which is sooner known than what it means. */
static bool is_file_of(const char *folder, const struct tokenizer *ours)
{
    struct error err;
    struct file file;
    if (!tokenizer_path(ours))
        return false;
    char *path = xasprintf("%s/tokenizer.json", folder);
    struct data_file own = tokenizer_file(ours);
    bool same = file_map(path, &file, &err) == 0;
    if (same) {
        same = file.size == own.size && file_hash(&file) == own.hash;
        file_unmap(&file);
    }
    free(own.path);
    free(path);
    return same;
}

/* That of the folder, whose file may be one that we do not read. */
static char *remark_tokenizer(const char *folder, const struct tokenizer *ours)
{
    static const char *const others[] = {"tokenizer.model", "vocab.json", "merges.txt", "vocab.txt",
                                         NULL};
    struct error err = {""};
    struct tokenizer *theirs = NULL;
    if (!ours)
        return NULL;
    if (!tensor_files_has(folder, "tokenizer.json")) {
        bool bytes = !tokenizer_path(ours);
        for (int i = 0; bytes && others[i]; i++)
            if (tensor_files_has(folder, others[i]))
                return xasprintf("its tokenizer (%s) is not that of the data, whose tokens are "
                                 "bytes, so that its model does not know these tokens",
                                 others[i]);
        return NULL;
    }
    if (is_file_of(folder, ours))
        return NULL;
    if (tokenizer_open(folder, &theirs, &err) < 0)
        return xasprintf("its tokenizer cannot be compared with the data's: %s", err.text);
    char *remark = remark_other(folder, theirs, ours);
    tokenizer_close(theirs);
    return remark;
}

void remarks_make(const struct job_config *job, int64_t vocab, const struct tokenizer *tokenizer,
                  struct remarks *out)
{
    char *made[REMARKS_MAX] = {remark_rows(vocab, job->model.vocab),
                               remark_tokenizer(job->model.weights, tokenizer)};
    out->count = 0;
    for (size_t i = 0; i < REMARKS_MAX; i++)
        if (made[i])
            out->texts[out->count++] = made[i];
}

void remarks_finish(struct remarks *remarks)
{
    for (size_t i = 0; i < remarks->count; i++)
        free(remarks->texts[i]);
    remarks->count = 0;
}
