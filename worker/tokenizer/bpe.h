/* bpe.h - what a tokenizer.json of byte-level BPE says, as in GPT-2, LLaMA 3 and Qwen. */
#ifndef WORKER_TOKENIZER_BPE_H
#define WORKER_TOKENIZER_BPE_H

#include "worker/tokenizer/added.h"
#include "worker/tokenizer/alphabet.h"
#include "worker/tokenizer/kind.h"
#include "worker/tokenizer/merges.h"
#include "worker/tokenizer/pattern.h"

struct bpe {
    /* In the order in which they are applied to a text. */
    struct added plain;      /* tokens to find in it as it is */
    bool nfc;                /* it is normalized */
    struct added normalized; /* tokens to find in it then */
    bool prefix;             /* a space is put before each part, unless it has one */
    struct pattern *pattern; /* parts are divided; NULL: they are not */
    bool whole_first;        /* a piece that is a token is that, however it would be merged */
    struct merges merges;
    int32_t bytes[ALPHABET_SIZE]; /* the token of each byte */
};

/* Sections of the file. Each returns -EINVAL if it is damaged, or with what was found and what is
 * supported. */

/* Its "model": the vocabulary and the merges. */
int bpe_read_model(struct tokenizer *tokenizer, const json_t *model, struct error *err);
/* "added_tokens" of the file; and which of them ends a text. After the model and the rules. */
int bpe_read_added(struct tokenizer *tokenizer, const json_t *root, struct error *err);
/* "normalizer", "pre_tokenizer" and "decoder". */
int bpe_read_rules(struct bpe *bpe, const json_t *root, struct error *err);
/* "post_processor": what comes before and after a text. */
int bpe_read_template(struct tokenizer *tokenizer, const json_t *processor, struct error *err);

/* The encoder's functions in the row. */
void bpe_begin(struct encoder *encoder);
void bpe_finish(struct encoder *encoder);
int bpe_add(struct encoder *encoder, const char *bytes, size_t size, struct error *err);
int bpe_end(struct encoder *encoder, struct error *err);

#endif
