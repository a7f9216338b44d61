/* corpus.c - lists of files, and the first difference between two. */
#include "coordinator/corpus/corpus.h"

#include "common/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct corpus *corpus_create(const char *node, uint32_t epoch)
{
    struct corpus *corpus = xcalloc(1, sizeof *corpus);
    corpus->node = xstrdup(node);
    corpus->epoch = epoch;
    return corpus;
}

void corpus_add(struct corpus *corpus, const char *path, uint64_t size, uint64_t hash)
{
    corpus->files = grow(corpus->files, corpus->count, &corpus->capacity, sizeof *corpus->files);
    corpus->files[corpus->count++] = (struct corpus_file){xstrdup(path), size, hash};
}

void corpus_destroy(struct corpus *corpus)
{
    if (!corpus)
        return;
    for (size_t i = 0; i < corpus->count; i++)
        free(corpus->files[i].path);
    free(corpus->files);
    free(corpus->node);
    free(corpus);
}

/* As in "node-a", or "node-a in epoch 1" if the other one is of another epoch. */
static const char *corpus_print_place(const struct corpus *corpus, const struct corpus *beside,
                                      char *out, size_t size)
{
    if (corpus->epoch == beside->epoch)
        snprintf(out, size, "%s", corpus->node);
    else
        snprintf(out, size, "%s in epoch %u", corpus->node, corpus->epoch);
    return out;
}

static const struct corpus_file *corpus_find(const struct corpus *corpus, const char *path)
{
    for (size_t i = 0; i < corpus->count; i++)
        if (strcmp(corpus->files[i].path, path) == 0)
            return &corpus->files[i];
    return NULL;
}

/* The first file of one that the other does not have; NULL if there is none. */
static const struct corpus_file *corpus_find_missing(const struct corpus *of,
                                                     const struct corpus *in)
{
    for (size_t i = 0; i < of->count; i++)
        if (!corpus_find(in, of->files[i].path))
            return &of->files[i];
    return NULL;
}

static int corpus_compare_file(const struct corpus_file *file, const struct corpus_file *other,
                               const char *there, const char *here, struct error *err)
{
    if (file->size != other->size)
        return error_set(err, -EBADF,
                         "'%s' has %" PRIu64 " bytes on %s and %" PRIu64 " bytes on %s", file->path,
                         file->size, there, other->size, here);
    if (file->hash != other->hash)
        return error_set(err, -EBADF,
                         "'%s' is not the same: its %" PRIu64 " bytes have the hash %016" PRIx64
                         " on %s and %016" PRIx64 " on %s",
                         file->path, file->size, file->hash, there, other->hash, here);
    return 0;
}

int corpus_compare(const struct corpus *first, const struct corpus *other, struct error *err)
{
    char there[160], here[160];
    corpus_print_place(first, other, there, sizeof there);
    corpus_print_place(other, first, here, sizeof here);
    const struct corpus_file *missing = corpus_find_missing(first, other);
    if (missing)
        return error_set(err, -EBADF, "'%s' is on %s and is missing or empty on %s", missing->path,
                         there, here);
    missing = corpus_find_missing(other, first);
    if (missing)
        return error_set(err, -EBADF, "'%s' is on %s and is missing or empty on %s", missing->path,
                         here, there);
    for (size_t i = 0; i < first->count; i++) {
        int rc = corpus_compare_file(&first->files[i], corpus_find(other, first->files[i].path),
                                     there, here, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}
