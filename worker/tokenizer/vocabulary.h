/* vocabulary.h - the bytes that each token stands for, by its id, and a token's id by its bytes. */
#ifndef WORKER_TOKENIZER_VOCABULARY_H
#define WORKER_TOKENIZER_VOCABULARY_H

#include "worker/tokenizer/byte_buffer.h"

#include <stdbool.h>
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

#endif
