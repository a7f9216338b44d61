/* encoding.h - texts encoded in parts, for tests. */
#ifndef TESTS_WORKER_TOKENIZER_ENCODING_H
#define TESTS_WORKER_TOKENIZER_ENCODING_H

#include "tests/support/suite.h"
#include "worker/tokenizer/tokenizer.h"

struct ids {
    int32_t *ids;
    size_t count, capacity;
};

/* Encode a text in parts of so many bytes; the caller frees the ids. */
struct ids encode(const struct tokenizer *tokenizer, const void *text, size_t size, size_t part);
/* The ids as in "1 2 3", and the bytes of all together; lent until the next call. */
const char *ids_print(const struct ids *ids);
size_t ids_decode(const struct tokenizer *tokenizer, const struct ids *ids, char *out, size_t size);

#endif
