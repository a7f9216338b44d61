/* suffixes.c - drops what is dominated as it is offered: of a hundred suffixes one or two remain,
 * so that it would take longer to keep them all and sort them. */
#include "coordinator/planner/exact/suffixes.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int in_order(const void *first, const void *second)
{
    const struct suffix *a = first, *b = second;
    if (a->before != b->before)
        return a->before < b->before ? -1 : 1;
    if (a->entry != b->entry)
        return a->entry < b->entry ? -1 : 1;
    if (a->sum_s != b->sum_s)
        return a->sum_s < b->sum_s ? -1 : 1;
    if (a->longest_s != b->longest_s)
        return a->longest_s < b->longest_s ? -1 : 1;
    if (a->rest_s != b->rest_s)
        return a->rest_s < b->rest_s ? -1 : 1;
    return a->end != b->end ? a->end - b->end : a->node - b->node;
}

static bool no_longer(const struct suffix *a, const struct suffix *b)
{
    return a->sum_s <= b->sum_s && a->longest_s <= b->longest_s &&
           a->sum_s + a->rest_s <= b->sum_s + b->rest_s;
}

/* What has just dominated one suffix usually dominates the next: it is compared first. */
static void move_to_front(struct suffixes *list, size_t index)
{
    struct suffix front = list->items[0];
    list->items[0] = list->items[index];
    list->items[index] = front;
}

void suffixes_offer(struct suffixes *list, const struct suffix *suffix)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct suffix *other = &list->items[i];
        if (no_longer(other, suffix) && in_order(other, suffix) <= 0) {
            move_to_front(list, i);
            return;
        }
    }
    for (size_t i = 0; i < list->count; i++)
        if (!no_longer(suffix, &list->items[i]) || in_order(suffix, &list->items[i]) >= 0)
            list->items[kept++] = list->items[i];
    list->count = kept;
    list->items = grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = *suffix;
}

void suffixes_move(struct suffixes *list, struct suffixes *out)
{
    if (list->count == 0)
        return;
    if (list->count > 1)
        qsort(list->items, list->count, sizeof *list->items, in_order);
    out->capacity = out->count + list->count;
    out->items = xrealloc(out->items, out->capacity * sizeof *out->items);
    memcpy(&out->items[out->count], list->items, list->count * sizeof *list->items);
    out->count = out->capacity;
    list->count = 0;
}

static int by_least(const void *first, const void *second)
{
    const struct suffix *a = first, *b = second;
    return a->least_s != b->least_s ? (a->least_s < b->least_s ? -1 : 1) : in_order(first, second);
}

double suffixes_cut_off(struct suffixes *list, size_t most)
{
    if (list->count <= most)
        return INFINITY;
    qsort(list->items, list->count, sizeof *list->items, by_least);
    list->count = most;
    return list->items[most].least_s;
}
