/* category.h - Unicode's general categories in patterns.
 *
 * The package tokenizers divides texts by Unicode 16, PCRE2 by what its release knows: 10.42 by
 * Unicode 14. A letter that is newer would be a symbol, and the text divided elsewhere. */
#ifndef WORKER_TOKENIZER_CATEGORY_H
#define WORKER_TOKENIZER_CATEGORY_H

#include "worker/tokenizer/byte_buffer.h"

#include <stdbool.h>

/* Append, as PCRE2 writes it, the category of Unicode 16, "L" or "Lu", or what is not in it: as
 * part of a class, or by itself. Of releases of PCRE2 and utf8proc that know more than Unicode 16,
 * it has the characters that are newer, too. */
void category_print(struct byte_buffer *out, const char *category, bool negated, bool in_class);

#endif
