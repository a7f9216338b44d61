/* merges.c - a linked list of tokens, and a heap of the pairs that can be merged. A pair of which a
 * token has been merged with another meanwhile stays in the heap, and is passed over. */
#include "worker/tokenizer/merges.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void merges_init(struct merges *merges, size_t count)
{
    merges->slot_count = 16;
    while (merges->slot_count < 2 * count)
        merges->slot_count *= 2;
    merges->slots = xcalloc(merges->slot_count, sizeof *merges->slots);
    memset(merges->slots, -1, merges->slot_count * sizeof *merges->slots);
}

static struct merge *find_slot(const struct merges *merges, int32_t left, int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t slot = hash_word(HASH_START, pair) & (merges->slot_count - 1);
    for (;; slot = (slot + 1) & (merges->slot_count - 1)) {
        struct merge *there = &merges->slots[slot];
        if (there->left < 0 || (there->left == left && there->right == right))
            return there;
    }
}

void merges_add(struct merges *merges, struct merge merge)
{
    struct merge *slot = find_slot(merges, merge.left, merge.right);
    merges->count += slot->left < 0;
    *slot = merge;
}

void merges_finish(struct merges *merges)
{
    free(merges->slots);
    *merges = (struct merges){0};
}

static bool is_before(const struct candidate *one, const struct candidate *other)
{
    return one->rank < other->rank || (one->rank == other->rank && one->place < other->place);
}

static void push(struct merging *merging, struct candidate candidate)
{
    merging->heap =
        grow(merging->heap, merging->count, &merging->heap_capacity, sizeof *merging->heap);
    size_t at = merging->count++;
    for (; at > 0 && is_before(&candidate, &merging->heap[(at - 1) / 2]); at = (at - 1) / 2)
        merging->heap[at] = merging->heap[(at - 1) / 2];
    merging->heap[at] = candidate;
}

static struct candidate pop(struct merging *merging)
{
    struct candidate least = merging->heap[0], last = merging->heap[--merging->count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < merging->count) {
        if (child + 1 < merging->count &&
            is_before(&merging->heap[child + 1], &merging->heap[child]))
            child++;
        if (!is_before(&merging->heap[child], &last))
            break;
        merging->heap[at] = merging->heap[child];
        at = child;
    }
    merging->heap[at] = last;
    return least;
}

/* If the token at `place` and the one after it can be merged, that is a candidate. */
static void consider(const struct merges *merges, struct merging *merging, const int32_t *ids,
                     int32_t place)
{
    if (place < 0 || merging->next[place] < 0)
        return;
    const struct merge *merge = find_slot(merges, ids[place], ids[merging->next[place]]);
    if (merge->left >= 0)
        push(merging, (struct candidate){merge->rank, place, merge->left, merge->right, merge->id});
}

static void link_all(struct merging *merging, size_t count)
{
    if (count > merging->capacity) {
        merging->capacity = 2 * count;
        merging->next = xrealloc(merging->next, merging->capacity * sizeof *merging->next);
        merging->previous =
            xrealloc(merging->previous, merging->capacity * sizeof *merging->previous);
    }
    for (size_t i = 0; i < count; i++) {
        merging->next[i] = i + 1 < count ? (int32_t)i + 1 : -1;
        merging->previous[i] = (int32_t)i - 1;
    }
}

/* Tokens that are gone have the id -1, which is in no pair. */
static void merge_at(struct merging *merging, int32_t *ids, const struct candidate *candidate)
{
    int32_t place = candidate->place, gone = merging->next[place], after = merging->next[gone];
    ids[place] = candidate->id;
    ids[gone] = -1;
    merging->next[place] = after;
    if (after >= 0)
        merging->previous[after] = place;
}

size_t merges_apply(const struct merges *merges, struct merging *merging, int32_t *ids,
                    size_t count)
{
    size_t left = 0;
    link_all(merging, count);
    merging->count = 0;
    for (size_t i = 0; i + 1 < count; i++)
        consider(merges, merging, ids, (int32_t)i);
    while (merging->count) {
        struct candidate least = pop(merging);
        int32_t next = merging->next[least.place];
        if (ids[least.place] != least.left || next < 0 || ids[next] != least.right)
            continue;
        merge_at(merging, ids, &least);
        consider(merges, merging, ids, merging->previous[least.place]);
        consider(merges, merging, ids, least.place);
    }
    for (int32_t place = count ? 0 : -1; place >= 0; place = merging->next[place])
        ids[left++] = ids[place];
    return left;
}

void merging_finish(struct merging *merging)
{
    free(merging->next);
    free(merging->previous);
    free(merging->heap);
    *merging = (struct merging){0};
}
