/* words.h - remembers how short pieces of text were encoded: most words of a text come again. */
#ifndef WORKER_TOKENIZER_WORDS_H
#define WORKER_TOKENIZER_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WORDS_COUNT 16384 /* 1 MiB of them */
#define WORD_SIZE 30
#define WORD_IDS 8

struct word {
    uint8_t size, count; /* size 0: there is none */
    char text[WORD_SIZE];
    int32_t ids[WORD_IDS];
};

/* The place of a word, which may have another; NULL: it is too long for any. */
struct word *words_place(struct word *words, const char *text, size_t size);

static inline bool word_is(const struct word *word, const char *text, size_t size)
{
    return word->size == size && memcmp(word->text, text, size) == 0;
}

/* Put it in its place, unless it has too many ids. */
void word_keep(struct word *word, const char *text, size_t size, const int32_t *ids, size_t count);

#endif
