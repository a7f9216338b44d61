/* kind.h - the family of tokenizers: a row for each kind, in tokenizer.c. */
#ifndef WORKER_TOKENIZER_KIND_H
#define WORKER_TOKENIZER_KIND_H

#include "worker/tokenizer/tokenizer.h"
#include "worker/tokenizer/vocabulary.h"

#include <jansson.h>

#define SURROUND_MAX 8

/* Tokens that the post-processor puts before a text, or after it. */
struct surround {
    int32_t ids[SURROUND_MAX];
    size_t count;
};

struct tokenizer {
    const struct tokenizer_kind *kind;
    char *path;           /* of its tokenizer.json; NULL: it has none */
    uint64_t bytes, hash; /* of that file */
    struct vocabulary vocabulary;
    size_t merges; /* how many there are */
    int32_t end;
    struct surround before, after;
    void *own; /* the kind's */
};

struct encoder {
    const struct tokenizer *tokenizer;
    tokenizer_took_cb *took_cb;
    void *data;
    void *own; /* the kind's */
};

struct tokenizer_kind {
    /* (optional) Whether a tokenizer.json is of this kind, which is an object, by its "model". */
    bool (*is)(const json_t *root);
    /* (with `is`) Fill in everything but kind and path. -EINVAL, as tokenizer_open().
     * Whatever is there afterwards is closed. */
    int (*read)(struct tokenizer *tokenizer, const json_t *root, struct error *err);
    /* (optional) Free `own`, which may be half-made or NULL. */
    void (*close)(struct tokenizer *tokenizer);
    /* (optional) As tokenizer_name_of(); else it is the token's bytes. */
    const char *(*name_of)(const struct tokenizer *tokenizer, int64_t id, size_t *size);
    /* (without `is`) A tokenizer.json of the tokenizer, freed by the caller. */
    char *(*print)(const struct tokenizer *tokenizer);

    /* (optional) Make and free the encoder's `own`. */
    void (*begin)(struct encoder *encoder);
    void (*finish)(struct encoder *encoder);
    /* As encoder_add() and encoder_end(); the latter is (optional). */
    int (*add)(struct encoder *encoder, const char *bytes, size_t size, struct error *err);
    int (*end)(struct encoder *encoder, struct error *err);
};

extern const struct tokenizer_kind tokenizer_bytes, tokenizer_bpe;

#endif
