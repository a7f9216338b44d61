/* words.c - a table with one place for each hash. */
#include "worker/tokenizer/words.h"

#include "common/base/hash.h"

struct word *words_place(struct word *words, const char *text, size_t size)
{
    return size <= WORD_SIZE ? &words[hash_words(size, text, size) % WORDS_COUNT] : NULL;
}

void word_keep(struct word *word, const char *text, size_t size, const int32_t *ids, size_t count)
{
    if (count > WORD_IDS)
        return;
    word->size = (uint8_t)size;
    word->count = (uint8_t)count;
    memcpy(word->text, text, size);
    memcpy(word->ids, ids, count * sizeof *ids);
}
