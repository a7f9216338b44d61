/* pattern.h - a regular expression that divides a text into the pieces that are encoded one by one.
 *
 * Expressions are those of Oniguruma, in which tokenizer.json has them, and are matched by PCRE2.
 * What the two understand differently is rewritten or refused; so is what looks back in the text,
 * because a text is divided while it is read. */
#ifndef WORKER_TOKENIZER_PATTERN_H
#define WORKER_TOKENIZER_PATTERN_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* The pattern of GPT-2. */
extern const char pattern_gpt2[];

/* Immutable: threads may share it. */
struct pattern;
/* What one thread needs to match. */
struct matcher;

/* -EINVAL: the expression has something that is not supported, or is none. */
int pattern_create(const char *expression, struct pattern **out, struct error *err);
/* Accepts NULL. */
void pattern_destroy(struct pattern *pattern);
struct matcher *matcher_create(const struct pattern *pattern);
/* Accepts NULL. */
void matcher_destroy(struct matcher *matcher);

/* Find the first piece of a text, valid UTF-8 that is not empty: what the expression *matches, or
 * what lies before that. Returns its size, which is 0 if that depends on what follows the text;
 * never if the text is `whole`. -EINVAL: matching takes too long. */
long pattern_piece(struct matcher *matcher, const char *text, size_t size, bool whole,
                   bool *matches, struct error *err);

#endif
