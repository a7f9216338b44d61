/* nearest.h - guesses which known word a misspelt one was meant to be. */
#ifndef COMMON_CONFIG_NEAREST_H
#define COMMON_CONFIG_NEAREST_H

#include <stddef.h>

/* The edit distance of two words: the letters to insert, delete, replace or swap with a neighbour
 * (optimal string alignment). For words longer than 63 letters, the length of the longer one. */
size_t nearest_distance(const char *one, const char *other);

/* The nearest of `count` words, the first of equals, borrowed from `words`. NULL when none is
 * within a third of the letters (at least one): a worse guess would only confuse. */
const char *nearest_word(const char *word, const char *const *words, size_t count);

#endif
