/* tokenizer.h - texts as ids of tokens, and back.
 *
 * A tokenizer is that of bytes, or comes from a tokenizer.json of the package tokenizers, whose ids
 * it then gives, each one. Whatever the bytes of a text are, they are in its tokens: each byte that
 * is not part of UTF-8 is a token by itself. (A normalizer may write a text otherwise.)
 *
 * What stands in a text like <|endoftext|> is that token, as it is for transformers. */
#ifndef WORKER_TOKENIZER_TOKENIZER_H
#define WORKER_TOKENIZER_TOKENIZER_H

#include "common/base/error.h"
#include "common/config/job.h"
#include "worker/data/data.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Immutable once it is open: threads may share it. */
struct tokenizer;

/* The tokenizer of bytes; if texts `end`, that is the token after the last byte. */
void tokenizer_open_bytes(bool end, struct tokenizer **out);
/* Read a tokenizer.json, or that of a folder. A tokenizer_config.json beside it may say which token
 * ends a text. -errno with the path; -EINVAL: it is damaged, or needs what is not supported, and
 * the text says what was found and what would be right. */
int tokenizer_open(const char *path, struct tokenizer **out, struct error *err);
/* Have another token end texts. -EINVAL: there is none with that text. */
int tokenizer_set_end(struct tokenizer *tokenizer, const char *text, struct error *err);
/* The same from `size` bytes of text, which are not kept: there is nothing for tokenizer_json(). */
int tokenizer_parse(const char *text, size_t size, struct tokenizer **out, struct error *err);
/* That of a job's data; NULL if nobody knows it. -EINVAL, too, if it has more tokens than the
 * model. */
int tokenizer_open_job(const struct job_config *job, struct tokenizer **out, struct error *err);
/* Accepts NULL. */
void tokenizer_close(struct tokenizer *tokenizer);

/* Where it was read from; NULL: from nowhere. */
const char *tokenizer_path(const struct tokenizer *tokenizer);
/* The same with its size and hash, as it was when it was read, in the way of data_files(): so that
 * nodes can be compared. The caller frees the path. */
struct data_file tokenizer_file(const struct tokenizer *tokenizer);
/* All ids are below this. */
int64_t tokenizer_size(const struct tokenizer *tokenizer);
/* The token that ends a text; -1: there is none. */
int32_t tokenizer_end(const struct tokenizer *tokenizer);
/* The tokens that come before a text, such as LLaMA's <|begin_of_text|>, or after it, because the
 * tokenizer's post-processor puts them there. Lent. */
const int32_t *tokenizer_before(const struct tokenizer *tokenizer, size_t *count);
const int32_t *tokenizer_after(const struct tokenizer *tokenizer, size_t *count);
/* The bytes of a token; lent. NULL: there is no such token. */
const char *tokenizer_text(const struct tokenizer *tokenizer, int64_t id, size_t *size);
/* What a tokenizer.json calls a token; lent. NULL: there is no such token. */
const char *tokenizer_name_of(const struct tokenizer *tokenizer, int64_t id, size_t *size);
/* Whether the two make the same tokens of a text; tokens that are only added to one of them do not
 * count. If not, *id is the first that stands for different ones; -1: none does. */
bool tokenizer_equal(const struct tokenizer *one, const struct tokenizer *other, int64_t *id);
/* As the text of a tokenizer.json, its own if it came from one; freed by the caller. -ESTALE: that
 * has changed since. */
int tokenizer_json(const struct tokenizer *tokenizer, char **out, struct error *err);

/* Called with ids, in order. An error ends the encoding, and is what it returns. */
typedef int tokenizer_took_cb(void *data, const int32_t *ids, size_t count, struct error *err);

/* Encodes one text after another, each in parts of any size. For one thread. Takes memory for a
 * piece of text without a place to divide it, and no more. */
struct encoder;
/* The tokenizer is lent. */
struct encoder *encoder_create(const struct tokenizer *tokenizer, tokenizer_took_cb *took_cb,
                               void *data);
/* Accepts NULL. */
void encoder_destroy(struct encoder *encoder);
/* The next part of the text. -EFBIG: there is a piece that is too long; -EINVAL: it takes too long
 * to divide; or what took_cb returned. The encoder can only be destroyed then. */
int encoder_add(struct encoder *encoder, const void *bytes, size_t size, struct error *err);
/* The text ends. */
int encoder_end(struct encoder *encoder, struct error *err);

#endif
