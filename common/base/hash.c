/* hash.c - FNV-1a, 64 bits (draft-eastlake-fnv). */
#include "common/base/hash.h"

#include <string.h>

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    for (const unsigned char *byte = bytes; size--; byte++)
        hash = (hash ^ *byte) * 0x100000001b3ull;
    return hash;
}

uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, strlen(text) + 1);
}

uint64_t hash_number(uint64_t hash, uint64_t number)
{
    for (int shift = 0; shift < 64; shift += 8)
        hash = (hash ^ ((number >> shift) & 0xff)) * 0x100000001b3ull;
    return hash;
}

/* FNV-1a over words. The high half is folded into the low one, because the low bits of a product do
 * not depend on the high bits of its factors. */
static inline uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

uint64_t hash_word(uint64_t hash, uint64_t word)
{
    return mix(hash, word);
}

uint64_t hash_words(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t word = 0;
    for (; size >= sizeof word; at += sizeof word, size -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, at, size);
    return size ? mix(hash, word) : hash;
}
