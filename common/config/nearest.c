/* nearest.c - computes edit distances by dynamic programming over three rows of the table. */
#include "common/config/nearest.h"

#include <string.h>

#define LETTERS_MAX 63

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t nearest_distance(const char *one, const char *other)
{
    size_t rows = strlen(one), columns = strlen(other);
    if (rows > LETTERS_MAX || columns > LETTERS_MAX)
        return rows > columns ? rows : columns;
    size_t before[LETTERS_MAX + 1] = {0}, above[LETTERS_MAX + 1], row[LETTERS_MAX + 1];
    for (size_t j = 0; j <= columns; j++)
        above[j] = j;
    for (size_t i = 1; i <= rows; i++) {
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t replaced = above[j - 1] + (one[i - 1] != other[j - 1]);
            row[j] = least(replaced, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        memcpy(before, above, sizeof before);
        memcpy(above, row, sizeof above);
    }
    return above[columns];
}

const char *nearest_word(const char *word, const char *const *words, size_t count)
{
    size_t letters = strlen(word);
    size_t bound = letters < 6 ? 1 : letters / 3;
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = nearest_distance(word, words[i]);
        if (distance > bound || (found && distance == bound))
            continue;
        found = words[i];
        bound = distance;
    }
    return found;
}
