/* corpus.h - the data files that a job's ranks read, as seen on one node.
 *
 * What the first rank reported holds for all others and for later epochs: ranks that read different
 * data would train on something else, unnoticed. Pure. */
#ifndef COORDINATOR_CORPUS_CORPUS_H
#define COORDINATOR_CORPUS_CORPUS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct corpus_file {
    char *path;
    uint64_t size, hash; /* what is hashed is described in worker/data/data.h */
};

struct corpus {
    char *node;
    uint32_t epoch; /* epoch of the job in which it was reported */
    struct corpus_file *files;
    size_t count, capacity;
};

/* Texts are copied. */
struct corpus *corpus_create(const char *node, uint32_t epoch);
void corpus_add(struct corpus *corpus, const char *path, uint64_t size, uint64_t hash);
/* Accepts NULL. */
void corpus_destroy(struct corpus *corpus);

/* -EBADF: they differ; the message tells which file, on which nodes, and how. */
int corpus_compare(const struct corpus *first, const struct corpus *other, struct error *err);

#endif
