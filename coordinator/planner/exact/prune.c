/* prune.c - drops choices that no wanted plan has, and the least promising of too many. */
#include "coordinator/planner/exact/instance.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ranked_choice {
    double bound_s;
    size_t index;
};

static int by_bound(const void *first, const void *second)
{
    const struct ranked_choice *a = first, *b = second;
    if (a->bound_s != b->bound_s)
        return a->bound_s < b->bound_s ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static uint64_t bytes_of(const struct choice *choice)
{
    return choice->cost.bytes.state + choice->cost.bytes.saved;
}

/* Keep the fastest half and, of the others, the smallest half. Returns the least bound of what is
 * dropped. */
static double keep_best(struct choices *choices, struct ranked_choice *ranked, size_t count,
                        size_t most)
{
    bool more = count > most;
    double omitted_s = more ? ranked[most / 2].bound_s : INFINITY;
    struct choice *kept = xcalloc(count, sizeof *kept);
    for (size_t i = 0; i < count; i++)
        kept[i] = choices->items[ranked[i].index];
    for (size_t i = most / 2; more && i < most; i++) {
        size_t smallest = i;
        for (size_t j = i + 1; j < count; j++)
            if (bytes_of(&kept[j]) < bytes_of(&kept[smallest]))
                smallest = j;
        struct choice swap = kept[i];
        kept[i] = kept[smallest];
        kept[smallest] = swap;
    }
    choices->count = more ? most : count;
    memcpy(choices->items, kept, choices->count * sizeof *kept);
    free(kept);
    return omitted_s;
}

double instance_prune(struct instance *instance, double upper_s, size_t most)
{
    double omitted_s = INFINITY;
    for (size_t c = 0; c < instance->all_count; c++) {
        struct choices *choices = instance->all[c];
        struct ranked_choice *ranked = xcalloc(choices->count, sizeof *ranked);
        size_t count = 0;
        for (size_t i = 0; i < choices->count; i++) {
            const struct choice *choice = &choices->items[i];
            double bound_s =
                instance_choice_bound(instance, choices, choice->floor_s, choice->floor_once_s);
            ranked[count] = (struct ranked_choice){bound_s, i};
            count += ranked[count].bound_s < upper_s;
        }
        if (count > 1)
            qsort(ranked, count, sizeof *ranked, by_bound);
        omitted_s = fmin(omitted_s, keep_best(choices, ranked, count, most));
        free(ranked);
    }
    return omitted_s;
}
