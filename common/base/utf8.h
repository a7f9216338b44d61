/* utf8.h - UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF. */
#ifndef COMMON_BASE_UTF8_H
#define COMMON_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at text, of which `left` are there; 0 where there is none. */
size_t utf8_size(const void *text, size_t left);
bool utf8_valid(const char *text);
/* Make of UTF-8 from elsewhere, which the end of its room may have cut, one line that JSON and
 * terminals take: control characters become '?', a part of a character is dropped. */
void utf8_tame(char *text);
/* Bytes that may be anything, what a model says for one, as UTF-8 that no terminal minds: the
 * rest, with all control characters but new lines and tabs, becomes '?'. The text is yours. */
char *utf8_clean(const void *bytes, size_t size);

#endif
