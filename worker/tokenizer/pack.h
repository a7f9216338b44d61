/* pack.h - writes texts as one token file, which data.tokens reads.
 *
 * If bytes are tokens and no text has an end, the tokens are exactly those that data.text reads.
 * The file appears under its name when it is complete and on disk, and not at all otherwise. Memory
 * does not depend on the size of the texts. */
#ifndef WORKER_TOKENIZER_PACK_H
#define WORKER_TOKENIZER_PACK_H

#include "common/base/error.h"
#include "worker/tokenizer/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack_request {
    const char *const *names; /* files, folders, or "-" for standard input */
    size_t name_count;
    const struct tokenizer *tokenizer;
    int input;        /* descriptor of standard input; -1: no name is "-" */
    const char *out;  /* path of the token file */
    bool end_of_text; /* the tokenizer's end follows every text */
    bool force;       /* the file may replace another */
    int end; /* descriptor: as soon as it can be read or hangs up, packing ends; -1: none */
    /* (optional) Called a few times a second. total 0: not known. */
    void (*progress_cb)(void *data, uint64_t bytes, uint64_t total);
    void *data;
};

struct pack_result {
    uint64_t documents; /* the texts that are not empty */
    uint64_t text_bytes, tokens, file_bytes;
};

/* -errno with the file and, where it matters, the offset; -ECANCELED: ended by request->end. *out
 * is set on success only. */
int pack_run(const struct pack_request *request, struct pack_result *out, struct error *err);

#endif
