/* added.c - a sorted list, in which a range is narrowed byte by byte. */
#include "worker/tokenizer/added.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

void added_add(struct added *added, const char *text, size_t size, int32_t id)
{
    added->tokens = grow(added->tokens, added->count, &added->capacity, sizeof *added->tokens);
    char *copy = xcalloc(1, size);
    memcpy(copy, text, size);
    added->tokens[added->count++] = (struct added_token){copy, size, id};
    added->first[(unsigned char)text[0]] = true;
}

static int compare(const void *one, const void *other)
{
    const struct added_token *a = one, *b = other;
    int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

void added_sort(struct added *added)
{
    if (added->count)
        qsort(added->tokens, added->count, sizeof *added->tokens, compare);
}

void added_finish(struct added *added)
{
    for (size_t i = 0; i < added->count; i++)
        free(added->tokens[i].text);
    free(added->tokens);
    *added = (struct added){0};
}

/* The first of tokens [low, high), which agree in their first `depth` bytes and are longer, whose
 * next byte is at least `byte`. */
static size_t bound(const struct added *added, size_t low, size_t high, size_t depth, int byte)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((unsigned char)added->tokens[middle].text[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token at the text's beginning. *open: a longer one may follow if the text does. */
static const struct added_token *match(const struct added *added, const char *text, size_t size,
                                       bool *open)
{
    const struct added_token *longest = NULL;
    size_t low = 0, high = added->count, depth = 0;
    for (; depth < size && low < high; depth++) {
        unsigned char byte = (unsigned char)text[depth];
        low = bound(added, low, high, depth, byte);
        high = bound(added, low, high, depth, byte + 1);
        if (low < high && added->tokens[low].size == depth + 1)
            longest = &added->tokens[low++]; /* whatever else is in the range is longer */
    }
    *open = depth == size && low < high;
    return longest;
}

const struct added_token *added_find(const struct added *added, const char *text, size_t size,
                                     bool whole, size_t *ahead)
{
    for (size_t i = 0; added->count && i < size; i++) {
        bool open;
        if (!added->first[(unsigned char)text[i]])
            continue;
        const struct added_token *token = match(added, text + i, size - i, &open);
        *ahead = i;
        if (open && !whole)
            return NULL;
        if (token)
            return token;
    }
    *ahead = size;
    return NULL;
}
