/* corpus.h - the files that the ranks of a job read, as one node has them.
 *
 * What the first rank reported holds for all others, and for the epochs that follow: ranks that
 * read something else would train on something else, and nobody would see it. Pure. */
#ifndef COORDINATOR_CORPUS_CORPUS_H
#define COORDINATOR_CORPUS_CORPUS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct corpus_file {
    char *path;
    uint64_t size, hash; /* worker/data/data.h says of what */
};

struct corpus {
    char *node;
    uint32_t epoch; /* of the job, in which it was reported */
    struct corpus_file *files;
    size_t count, capacity;
};

/* Texts are copied. */
struct corpus *corpus_create(const char *node, uint32_t epoch);
void corpus_add(struct corpus *corpus, const char *path, uint64_t size, uint64_t hash);
/* Accepts NULL. */
void corpus_destroy(struct corpus *corpus);

/* -EBADF: which file differs, on which nodes, and in what. */
int corpus_compare(const struct corpus *first, const struct corpus *other, struct error *err);

#endif
