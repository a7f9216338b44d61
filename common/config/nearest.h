/* nearest.h - the known word that a misspelt one was probably meant to be. */
#ifndef COMMON_CONFIG_NEAREST_H
#define COMMON_CONFIG_NEAREST_H

#include <stddef.h>

/* How many letters must be inserted, deleted, replaced or swapped with their neighbour to turn
 * one word into the other (optimal string alignment). Words longer than 63 letters count as far
 * apart as the longer of them is long. */
size_t nearest_distance(const char *one, const char *other);

/* Lend the nearest of count words, the first of equals; NULL when none is within a third of the
 * letters (at least one), since a guess further off would only confuse. */
const char *nearest_word(const char *word, const char *const *words, size_t count);

#endif
