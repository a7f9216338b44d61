/* vocabulary.c - all bytes in one block, and a hash table of ids; bytes as characters, and back;
 * and the tokens to be found, as a sorted list, in which a range is narrowed byte by byte. */
#include "worker/tokenizer/vocabulary.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void ensure_size(struct vocabulary *vocabulary, size_t size)
{
    if (size > vocabulary->capacity) {
        size_t capacity = 2 * size;
        vocabulary->places = xrealloc(vocabulary->places, capacity * sizeof *vocabulary->places);
        memset(vocabulary->places + vocabulary->capacity, 0,
               (capacity - vocabulary->capacity) * sizeof *vocabulary->places);
        vocabulary->capacity = capacity;
    }
    if (size > vocabulary->size)
        vocabulary->size = size;
}

bool vocabulary_set(struct vocabulary *vocabulary, int32_t id, const void *bytes, size_t size)
{
    assert(id >= 0 && id < VOCABULARY_MAX);
    ensure_size(vocabulary, (size_t)id + 1);
    struct vocabulary_place *place = &vocabulary->places[id];
    if (place->size)
        return false;
    *place = (struct vocabulary_place){(uint32_t)vocabulary->bytes.size, (uint32_t)size + 1};
    byte_buffer_add(&vocabulary->bytes, bytes, size);
    return true;
}

const char *vocabulary_get(const struct vocabulary *vocabulary, int64_t id, size_t *size)
{
    if (id < 0 || (size_t)id >= vocabulary->size || !vocabulary->places[id].size)
        return NULL;
    *size = vocabulary->places[id].size - 1;
    return vocabulary->bytes.bytes + vocabulary->places[id].offset;
}

/* The slot of these bytes, or the empty one where they would be. */
static size_t find_slot(const struct vocabulary *vocabulary, const void *bytes, size_t size)
{
    size_t slot = hash_words(HASH_START, bytes, size) & (vocabulary->slot_count - 1), length;
    for (;; slot = (slot + 1) & (vocabulary->slot_count - 1)) {
        const char *there = vocabulary_get(vocabulary, vocabulary->slots[slot], &length);
        if (!there || (length == size && memcmp(there, bytes, size) == 0))
            return slot;
    }
}

void vocabulary_index(struct vocabulary *vocabulary)
{
    vocabulary->slot_count = 16;
    while (vocabulary->slot_count < 2 * vocabulary->size)
        vocabulary->slot_count *= 2;
    vocabulary->slots = xcalloc(vocabulary->slot_count, sizeof *vocabulary->slots);
    memset(vocabulary->slots, -1, vocabulary->slot_count * sizeof *vocabulary->slots);
    for (size_t id = 0; id < vocabulary->size; id++) {
        size_t size;
        const char *bytes = vocabulary_get(vocabulary, (int64_t)id, &size);
        if (bytes)
            vocabulary->slots[find_slot(vocabulary, bytes, size)] = (int32_t)id;
    }
}

int32_t vocabulary_find(const struct vocabulary *vocabulary, const void *bytes, size_t size)
{
    return vocabulary->slots[find_slot(vocabulary, bytes, size)];
}

void vocabulary_finish(struct vocabulary *vocabulary)
{
    byte_buffer_finish(&vocabulary->bytes);
    free(vocabulary->places);
    free(vocabulary->slots);
    *vocabulary = (struct vocabulary){0};
}

#define LATIN 256

static bool prints(int byte)
{
    return (byte > ' ' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

/* How many bytes below this one are not printable. */
static int rank_of(int byte)
{
    int rank = 0;
    for (int below = 0; below < byte; below++)
        rank += !prints(below);
    return rank;
}

void alphabet_print(int byte, char out[3])
{
    int code = prints(byte) ? byte : LATIN + rank_of(byte), length = 0;
    if (code < 0x80) {
        out[length++] = (char)code;
    } else {
        out[length++] = (char)(0xc0 | code >> 6);
        out[length++] = (char)(0x80 | (code & 0x3f));
    }
    out[length] = '\0';
}

/* The byte that a character stands for; -1: it is none of the alphabet. */
static int byte_of(int code)
{
    if (code < LATIN)
        return prints(code) ? code : -1;
    /* Not printable are 0 .. 32, 127 .. 160 and 173. */
    int rank = code - LATIN;
    return rank <= ' ' ? rank : rank <= 66 ? rank - 33 + 127 : rank == 67 ? 0xad : -1;
}

long alphabet_read(const char *text, size_t size, char *out)
{
    long count = 0;
    for (size_t i = 0; i < size; i++) {
        int code = (unsigned char)text[i];
        if (code >= 0x80) {
            if ((code & 0xe0) != 0xc0 || i + 1 == size)
                return -1;
            code = (code & 0x1f) << 6 | ((unsigned char)text[++i] & 0x3f);
        }
        int byte = byte_of(code);
        if (byte < 0)
            return -1;
        out[count++] = (char)byte;
    }
    return count;
}

void added_add(struct added *added, const char *text, size_t size, int32_t id)
{
    added->tokens = grow(added->tokens, added->count, &added->capacity, sizeof *added->tokens);
    char *copy = xcalloc(1, size);
    memcpy(copy, text, size);
    added->tokens[added->count++] = (struct added_token){copy, size, id};
    added->first[(unsigned char)text[0]] = true;
}

static int compare_added(const void *one, const void *other)
{
    const struct added_token *a = one, *b = other;
    int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

void added_sort(struct added *added)
{
    if (added->count)
        qsort(added->tokens, added->count, sizeof *added->tokens, compare_added);
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
static size_t bound_range(const struct added *added, size_t low, size_t high, size_t depth,
                          int byte)
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
static const struct added_token *match_added(const struct added *added, const char *text,
                                             size_t size, bool *open)
{
    const struct added_token *longest = NULL;
    size_t low = 0, high = added->count, depth = 0;
    for (; depth < size && low < high; depth++) {
        unsigned char byte = (unsigned char)text[depth];
        low = bound_range(added, low, high, depth, byte);
        high = bound_range(added, low, high, depth, byte + 1);
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
        const struct added_token *token = match_added(added, text + i, size - i, &open);
        *ahead = i;
        if (open && !whole)
            return NULL;
        if (token)
            return token;
    }
    *ahead = size;
    return NULL;
}
