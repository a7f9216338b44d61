/* alphabet.h - how byte-level vocabularies write bytes as characters.
 *
 * As in GPT-2's encoder.py: a byte that is printable in Latin-1 is that character, the others are
 * in order the characters from U+0100 on. So "Ġthe" is " the". */
#ifndef WORKER_TOKENIZER_ALPHABET_H
#define WORKER_TOKENIZER_ALPHABET_H

#include <stdbool.h>
#include <stddef.h>

#define ALPHABET_SIZE 256

/* The character of a byte in UTF-8, NUL-terminated. */
void alphabet_print(int byte, char out[3]);
/* The bytes of a token, at most `size` of them. Returns how many, or -1 if one of its characters
 * is none of the alphabet. */
long alphabet_read(const char *text, size_t size, char *out);

#endif
