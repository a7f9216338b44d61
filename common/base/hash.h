/* hash.h - 64-bit fingerprints (FNV-1a) for telling programs and files apart; no security. */
#ifndef COMMON_BASE_HASH_H
#define COMMON_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325ull

/* Fold size bytes into hash; start from HASH_START. */
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size);
uint64_t hash_text(uint64_t hash, const char *text);
uint64_t hash_number(uint64_t hash, uint64_t number);
/* Faster, a word at a time: for tables and programs, which are hashed by the thousand. */
uint64_t hash_word(uint64_t hash, uint64_t word);
uint64_t hash_words(uint64_t hash, const void *bytes, size_t size);

#endif
