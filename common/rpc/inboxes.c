/* inboxes.c - an array that is searched linearly: it has some thousand entries and takes a few
 * batches a second. */
#include "common/rpc/inboxes.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>

struct entry {
    uint64_t client;
    uint64_t stream_hash;
    uint64_t used; /* number of the get that used it last */
    struct inbox inbox;
};

struct inboxes {
    struct entry *entries;
    size_t count, capacity, count_max;
    uint64_t gets;
};

struct inboxes *inboxes_create(size_t count_max)
{
    assert(count_max > 0);
    struct inboxes *inboxes = xcalloc(1, sizeof *inboxes);
    inboxes->count_max = count_max;
    return inboxes;
}

void inboxes_destroy(struct inboxes *inboxes)
{
    if (!inboxes)
        return;
    free(inboxes->entries);
    free(inboxes);
}

/* The place for a new entry: behind the last, or that of the least recently used. */
static struct entry *make_room(struct inboxes *inboxes)
{
    if (inboxes->count < inboxes->count_max) {
        inboxes->entries =
            grow(inboxes->entries, inboxes->count, &inboxes->capacity, sizeof *inboxes->entries);
        return &inboxes->entries[inboxes->count++];
    }
    struct entry *oldest = inboxes->entries;
    for (size_t i = 1; i < inboxes->count; i++)
        if (inboxes->entries[i].used < oldest->used)
            oldest = &inboxes->entries[i];
    return oldest;
}

struct inbox *inboxes_get(struct inboxes *inboxes, uint64_t client, const char *stream)
{
    uint64_t hash = hash_text(HASH_START, stream);
    struct entry *entry = NULL;
    for (size_t i = 0; i < inboxes->count && !entry; i++)
        if (inboxes->entries[i].client == client && inboxes->entries[i].stream_hash == hash)
            entry = &inboxes->entries[i];
    if (!entry) {
        entry = make_room(inboxes);
        *entry = (struct entry){.client = client, .stream_hash = hash};
    }
    entry->used = ++inboxes->gets;
    return &entry->inbox;
}
