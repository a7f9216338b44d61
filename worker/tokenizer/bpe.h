/* bpe.h - what a tokenizer.json of byte-level BPE says, as in GPT-2, LLaMA 3 and Qwen. */
#ifndef WORKER_TOKENIZER_BPE_H
#define WORKER_TOKENIZER_BPE_H

#include "worker/tokenizer/kind.h"
#include "worker/tokenizer/merges.h"
#include "worker/tokenizer/pattern.h"
#include "worker/tokenizer/vocabulary.h"

struct bpe {
    /* In the order in which they are applied to a text. */
    struct added plain;      /* tokens to find in it as it is */
    bool nfc;                /* it is normalized */
    struct added normalized; /* tokens to find in it then */
    bool prefix;             /* a space is put before each part, unless it has one */
    struct pattern *pattern; /* parts are divided; NULL: they are not */
    /* Of the pieces, those that match or those that do not are left out. */
    bool drops_matches, drops_gaps;
    bool whole_first; /* a piece that is a token is that, however it would be merged */
    struct merges merges;
    int32_t bytes[ALPHABET_SIZE]; /* the token of each byte */
};

/* Append Unicode's normal form C of a text, valid UTF-8, or of a part that can be normalized by
 * itself whatever follows it. */
void nfc_append(struct byte_buffer *out, const char *text, size_t size);

/* The encoder's functions in the row. */
void bpe_begin(struct encoder *encoder);
void bpe_finish(struct encoder *encoder);
int bpe_add(struct encoder *encoder, const char *bytes, size_t size, struct error *err);
int bpe_end(struct encoder *encoder, struct error *err);

#endif
