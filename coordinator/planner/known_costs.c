/* known_costs.c - a table with open addressing. */
#include "coordinator/planner/known_costs.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

struct cost_entry {
    bool taken;
    struct cost_key key;
    struct part_cost cost;
};

void known_costs_init(struct known_costs *known)
{
    *known = (struct known_costs){.capacity = 1024};
    known->entries = xcalloc(known->capacity, sizeof *known->entries);
}

void known_costs_finish(struct known_costs *known)
{
    free(known->entries);
    for (size_t i = 0; i < known->kept_count; i++)
        free(known->kept[i]);
    free(known->kept);
}

/* The entry of this key, or the free one where it belongs. */
static struct cost_entry *find_entry(struct cost_entry *entries, size_t capacity,
                                     const struct cost_key *key)
{
    size_t i = hash_words(HASH_START, key, sizeof *key) & (capacity - 1);
    while (entries[i].taken && memcmp(&entries[i].key, key, sizeof *key) != 0)
        i = (i + 1) & (capacity - 1);
    return &entries[i];
}

bool known_costs_recall(const struct known_costs *known, const struct cost_key *key,
                        struct part_cost *out)
{
    const struct cost_entry *entry = find_entry(known->entries, known->capacity, key);
    if (entry->taken)
        *out = entry->cost;
    return entry->taken;
}

void known_costs_remember(struct known_costs *known, const struct cost_key *key,
                          const struct part_cost *cost)
{
    if (2 * (known->count + 1) > known->capacity) {
        size_t capacity = 2 * known->capacity;
        struct cost_entry *entries = xcalloc(capacity, sizeof *entries);
        for (size_t i = 0; i < known->capacity; i++)
            if (known->entries[i].taken)
                *find_entry(entries, capacity, &known->entries[i].key) = known->entries[i];
        free(known->entries);
        known->entries = entries;
        known->capacity = capacity;
    }
    *find_entry(known->entries, known->capacity, key) =
        (struct cost_entry){.taken = true, .key = *key, .cost = *cost};
    known->count++;
}

const struct part_bytes *known_costs_keep(struct known_costs *known, const struct part_bytes *ranks,
                                          int count)
{
    struct part_bytes *copy = xcalloc((size_t)count, sizeof *copy);
    memcpy(copy, ranks, (size_t)count * sizeof *copy);
    known->kept =
        grow(known->kept, known->kept_count, &known->kept_capacity, sizeof(struct part_bytes *));
    known->kept[known->kept_count++] = copy;
    return copy;
}
