/* hash.h - 64-bit fingerprints (FNV-1a) for telling programs and files apart. Not cryptographic.
 *
 * All functions extend a running hash, which starts from HASH_START. */
#ifndef COMMON_BASE_HASH_H
#define COMMON_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325ull

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size);
uint64_t hash_text(uint64_t hash, const char *text);
uint64_t hash_number(uint64_t hash, uint64_t number);
/* A faster variant, with other results, that takes a word at a time: for hash tables and programs,
 * which are hashed by the thousand. */
uint64_t hash_word(uint64_t hash, uint64_t word);
uint64_t hash_words(uint64_t hash, const void *bytes, size_t size);

#endif
