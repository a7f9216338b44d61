/* added.h - tokens that are found in a text before it is divided: <|endoftext|> and the like.
 *
 * From left to right, and of those that begin at one place the longest. */
#ifndef WORKER_TOKENIZER_ADDED_H
#define WORKER_TOKENIZER_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
