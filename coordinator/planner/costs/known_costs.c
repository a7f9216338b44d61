/* known_costs.c - a table with open addressing. */
#include "coordinator/planner/costs/known_costs.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

struct cost_entry {
    struct cost_key key;
    struct part_cost cost;
};

#define SLOTS_FIRST 1024

void known_costs_init(struct known_costs *known)
{
    *known = (struct known_costs){.slot_count = SLOTS_FIRST};
    known->slots = xcalloc(known->slot_count, sizeof *known->slots);
}

void known_costs_finish(struct known_costs *known)
{
    free(known->entries);
    free(known->slots);
    for (size_t i = 0; i < known->kept_count; i++)
        free(known->kept[i]);
    free(known->kept);
}

/* The slot that holds the key's entry, or the empty one where it belongs. */
static uint32_t *find_slot(const struct known_costs *known, const struct cost_key *key)
{
    size_t i = hash_words(HASH_START, key, sizeof *key) & (known->slot_count - 1);
    while (known->slots[i] &&
           memcmp(&known->entries[known->slots[i] - 1].key, key, sizeof *key) != 0)
        i = (i + 1) & (known->slot_count - 1);
    return &known->slots[i];
}

bool known_costs_recall(const struct known_costs *known, const struct cost_key *key,
                        struct part_cost *out)
{
    uint32_t slot = *find_slot(known, key);
    if (slot)
        *out = known->entries[slot - 1].cost;
    return slot != 0;
}

static void double_slots(struct known_costs *known)
{
    free(known->slots);
    known->slot_count *= 2;
    known->slots = xcalloc(known->slot_count, sizeof *known->slots);
    for (size_t i = 0; i < known->count; i++)
        *find_slot(known, &known->entries[i].key) = (uint32_t)i + 1;
}

void known_costs_remember(struct known_costs *known, const struct cost_key *key,
                          const struct part_cost *cost)
{
    if (2 * (known->count + 1) > known->slot_count)
        double_slots(known);
    known->entries = grow(known->entries, known->count, &known->capacity, sizeof *known->entries);
    uint32_t *slot = find_slot(known, key);
    known->entries[known->count++] = (struct cost_entry){*key, *cost};
    *slot = (uint32_t)known->count;
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
