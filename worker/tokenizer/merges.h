/* merges.h - byte-pair encoding: pairs of tokens become one, those of the lowest rank first, and of
 * equal ones the leftmost, until none is left that has a rank. */
#ifndef WORKER_TOKENIZER_MERGES_H
#define WORKER_TOKENIZER_MERGES_H

#include <stddef.h>
#include <stdint.h>

struct merge {
    int32_t left, right; /* left -1: an empty slot */
    int32_t rank, id;    /* of the pair, and of what it becomes */
};

struct merges {
    struct merge *slots;
    size_t slot_count; /* a power of two */
    size_t count;
};

/* An empty table with room for `count` pairs. */
void merges_init(struct merges *merges, size_t count);
/* A pair that is there already gets the new rank. */
void merges_add(struct merges *merges, struct merge merge);
void merges_finish(struct merges *merges);

/* Memory of one thread for merges_apply; zeroed at first. */
struct merging {
    int32_t *next, *previous; /* of the tokens that are left, by place; -1: none */
    struct candidate {
        int32_t rank, place, left, right, id;
    } * heap; /* the least first */
    size_t capacity, count, heap_capacity;
};

/* Merge the `count` tokens at `ids` in place; returns how many are left. O(n log n). */
size_t merges_apply(const struct merges *merges, struct merging *merging, int32_t *ids,
                    size_t count);
void merging_finish(struct merging *merging);

#endif
