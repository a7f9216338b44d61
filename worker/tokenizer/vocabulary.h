/* vocabulary.h - tokens by their ids, by their bytes, as files spell these, and those that are
 * found in a text as they stand. */
#ifndef WORKER_TOKENIZER_VOCABULARY_H
#define WORKER_TOKENIZER_VOCABULARY_H

#include "worker/tokenizer/byte_buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Above all ids: four times the largest vocabulary that is known. */
#define VOCABULARY_MAX 1048576

struct vocabulary {
    struct byte_buffer bytes; /* of all tokens */
    struct vocabulary_place {
        uint32_t offset;
        uint32_t size;     /* and one more; 0: there is no such token */
    } * places;            /* by id */
    size_t size, capacity; /* ids are below size; not all of them have to be used */
    int32_t *slots;        /* of ids by their bytes, -1: empty; NULL: no index was made */
    size_t slot_count;     /* a power of two */
};

/* Give a token its bytes. False if it has some already. 0 <= id < VOCABULARY_MAX. */
bool vocabulary_set(struct vocabulary *vocabulary, int32_t id, const void *bytes, size_t size);
/* Lent; NULL if there is no such token. */
const char *vocabulary_get(const struct vocabulary *vocabulary, int64_t id, size_t *size);
/* Make the index that vocabulary_find() needs, of all tokens there are now. */
void vocabulary_index(struct vocabulary *vocabulary);
/* The token of exactly these bytes; -1: there is none. */
int32_t vocabulary_find(const struct vocabulary *vocabulary, const void *bytes, size_t size);
void vocabulary_finish(struct vocabulary *vocabulary);

/* How byte-level vocabularies write bytes as characters, as in GPT-2's encoder.py: a byte that is
 * printable in Latin-1 is that character, the others are in order the characters from U+0100 on. So
 * "Ġthe" is " the". */
#define ALPHABET_SIZE 256

/* The character of a byte in UTF-8, NUL-terminated. */
void alphabet_print(int byte, char out[3]);
/* The bytes of a token, at most `size` of them. Returns how many, or -1 if one of its characters
 * is none of the alphabet. */
long alphabet_read(const char *text, size_t size, char *out);

/* Tokens that are found in a text before it is divided: <|endoftext|> and the like. From left to
 * right, and of those that begin at one place the longest. */
struct added_token {
    char *text;
    size_t size;
    int32_t id;
};

struct added {
    struct added_token *tokens; /* in order of their bytes once added_sort() was called */
    size_t count, capacity;
    bool first[256]; /* whether one begins with this byte */
};

/* Copies the text, which is not empty. */
void added_add(struct added *added, const char *text, size_t size, int32_t id);
void added_sort(struct added *added);
void added_finish(struct added *added);

/* The first token in a text, after which more may come unless it is `whole`. *ahead is the number
 * of bytes before it; without one (NULL), the number of those in which none begins whatever comes.
 */
const struct added_token *added_find(const struct added *added, const char *text, size_t size,
                                     bool whole, size_t *ahead);

#endif
