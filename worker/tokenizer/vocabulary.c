/* vocabulary.c - all bytes in one block, and a hash table of ids. */
#include "worker/tokenizer/vocabulary.h"

#include "common/base/hash.h"

#include <assert.h>

static void make_room(struct vocabulary *vocabulary, size_t size)
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
    make_room(vocabulary, (size_t)id + 1);
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
