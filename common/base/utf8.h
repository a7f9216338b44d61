/* utf8.h - validates and cleans UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing past
 * U+10FFFF. */
#ifndef COMMON_BASE_UTF8_H
#define COMMON_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length in bytes of the character at `text`, with `left` bytes available; 0 if there is no
 * valid one. */
size_t utf8_size(const void *text, size_t left);
bool utf8_valid(const char *text);
/* How many bytes at the end of a text may begin a character that goes on: 0 to 3. */
size_t utf8_cut(const void *text, size_t size);
/* Turn text from elsewhere, which may have been cut in the middle of a character, into one line
 * that is safe for JSON and terminals: control characters become '?', a cut character is dropped.
 */
void utf8_tame(char *text);
/* Turn arbitrary bytes, such as the output of a model, into valid UTF-8 that is safe for terminals:
 * everything else, and control characters except newline and tab, becomes '?'. Freed by the
 * caller. */
char *utf8_clean(const void *bytes, size_t size);

#endif
