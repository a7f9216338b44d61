/* text.h - text from elsewhere: whether it is UTF-8, what makes it safe to print, and which word
 * was meant.
 *
 * UTF-8 is that of RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF. */
#ifndef COMMON_BASE_TEXT_H
#define COMMON_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The length in bytes of the character at `text`, with `left` bytes available; 0 if there is no
 * valid one. */
size_t text_size(const void *text, size_t left);
bool text_valid(const char *text);
/* How many bytes at the end of a text may begin a character that goes on: 0 to 3. */
size_t text_cut(const void *text, size_t size);

/* Replace every byte that is not valid UTF-8 by '?', in text that is from elsewhere or was cut. */
void text_mend(char *text);
/* Turn text from elsewhere, which may have been cut in the middle of a character, into one line
 * that is safe for JSON and terminals: control characters become '?', a cut character is dropped.
 */
void text_tame(char *text);
/* Turn arbitrary bytes, such as the output of a model, into valid UTF-8 that is safe for terminals:
 * everything else, and control characters except newline and tab, becomes '?'. Freed by the
 * caller. */
char *text_clean(const void *bytes, size_t size);

/* Is it a name, of a node, job or user: 1 to 63 letters, digits, '.', '-' and '_', the first a
 * letter or digit? */
#define TEXT_NAME_SIZE 64 /* including the NUL */
bool text_is_name(const char *text);

/* Which of `count` words a misspelt one was meant to be: the one with the fewest letters to insert,
 * delete, replace or swap with a neighbour, the first of equals, borrowed from `words`. NULL when
 * none is within a third of the letters (at least one): a worse guess would only confuse. */
const char *text_nearest(const char *word, const char *const *words, size_t count);

#endif
