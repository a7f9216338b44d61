/* labels.c - memory of labels per rank, and dominance between labels. */
#include "coordinator/planner/exact/labels.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BANDS 64 /* memory bands that labels are put into before they are sorted */

struct label_list labels_of(const struct frontiers *frontiers, const struct frontier *frontier)
{
    return (struct label_list){.ranks = frontiers->instance->relaxed ? 0 : frontier->site->ranks};
}

static struct label *add(struct label_list *list, const struct label *label)
{
    list->items = grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count] = *label;
    return &list->items[list->count++];
}

/* Make room for the memory of the next label on each rank. */
static struct taken *make_room(struct label_list *list)
{
    for (size_t i = 0; i < (size_t)list->ranks; i++)
        list->of = grow(list->of, list->of_count + i, &list->of_capacity, sizeof *list->of);
    return &list->of[list->of_count];
}

/* Add a label that owns what was written into that room. */
static void add_apart(struct label_list *list, const struct label *label)
{
    add(list, label)->ranks = (int)list->of_count;
    list->of_count += (size_t)list->ranks;
}

static bool fits_on(const struct frontier *frontier, const struct taken *taken, int rank)
{
    const struct site *site = frontier->site;
    return taken_total(taken) <= frontier->limit + (site->limits[rank] - site->memory_bytes);
}

void labels_add_choice(struct label_list *list, const struct frontier *frontier,
                       const struct label *label, const struct part_cost *cost)
{
    if (list->ranks == 0 || !cost->ranks) {
        add(list, label);
        return;
    }
    struct taken *ranks = make_room(list);
    for (int rank = 0; rank < list->ranks; rank++) {
        ranks[rank] = taken_block(&cost->ranks[rank], (uint64_t)frontier->slots);
        if (!fits_on(frontier, &ranks[rank], rank))
            return;
    }
    add_apart(list, label);
}

void labels_add_joined(struct label_list *list, const struct frontier *frontier,
                       const struct label *label, const struct joined *from)
{
    if (list->ranks == 0 ||
        (from->left->ranks < 0 && from->right->ranks < 0 && !from->joint->ranks)) {
        add(list, label);
        return;
    }
    struct taken *ranks = make_room(list);
    for (int rank = 0; rank < list->ranks; rank++) {
        ranks[rank] = taken_join(label_on(from->left, from->left_of->ranks, rank),
                                 label_on(from->right, from->right_of->ranks, rank),
                                 part_cost_bytes(from->joint, rank), (uint64_t)frontier->slots);
        if (!fits_on(frontier, &ranks[rank], rank))
            return;
    }
    add_apart(list, label);
}

/* Also drops the per-rank memory of labels that were dropped. */
void labels_hand_over(struct label_list *list, struct frontier *frontier)
{
    struct label_list kept = {.ranks = list->ranks};
    for (size_t i = 0; i < list->count; i++) {
        struct label *label = &list->items[i];
        if (label->ranks < 0)
            continue;
        memcpy(make_room(&kept), &list->of[label->ranks], (size_t)list->ranks * sizeof *kept.of);
        label->ranks = (int)kept.of_count;
        kept.of_count += (size_t)kept.ranks;
    }
    free(list->of);
    frontier->labels = xrealloc(list->items, list->count * sizeof *list->items); /* few are left */
    frontier->count = list->count;
    frontier->ranks = kept.of;
    *list = (struct label_list){0};
}

/* Group labels by their ends, stably: pair p occupies [first[p], first[p + 1]). The caller frees
 * the result. */
static size_t *gather(struct label_list *list, size_t *pairs)
{
    size_t entries = 0, exits = 0;
    for (size_t i = 0; i < list->count; i++) {
        size_t entry = (size_t)list->items[i].entry, exit = (size_t)list->items[i].exit;
        entries = entry < entries ? entries : entry + 1;
        exits = exit < exits ? exits : exit + 1;
    }
    *pairs = entries * exits;
    size_t *first = xcalloc(*pairs + 2, sizeof *first), *next = first + 1;
    struct label *items = xrealloc(NULL, list->count * sizeof *items);
    for (size_t i = 0; i < list->count; i++)
        next[(size_t)list->items[i].entry * exits + (size_t)list->items[i].exit + 1]++;
    for (size_t pair = 0; pair < *pairs; pair++)
        next[pair + 1] += next[pair];
    for (size_t i = 0; i < list->count; i++)
        items[next[(size_t)list->items[i].entry * exits + (size_t)list->items[i].exit]++] =
            list->items[i];
    free(list->items);
    list->items = items;
    list->capacity = list->count;
    return first;
}

/* Order among labels with the same ends: a label comes before those it may dominate. */
static int in_order(const void *first, const void *second, void *context)
{
    const struct label *a = first, *b = second;
    const struct frontiers *frontiers = context;
    double x = labels_alone_seconds(frontiers, a), y = labels_alone_seconds(frontiers, b);
    if (x != y)
        return x < y ? -1 : 1;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    if (a->taken.bytes != b->taken.bytes)
        return a->taken.bytes < b->taken.bytes ? -1 : 1;
    if (a->taken.transient != b->taken.transient)
        return a->taken.transient < b->taken.transient ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static bool no_more(const struct taken *a, const struct taken *b)
{
    return a->bytes <= b->bytes && a->transient <= b->transient && a->forward <= b->forward &&
           a->beside <= b->beside;
}

/* Compare seconds and memory on the rank with the least memory, then on every rank. a precedes b in
 * order, so it takes no longer if it is alone. */
static bool dominates(const struct frontiers *frontiers, const struct label_list *list,
                      const struct label *a, const struct label *b)
{
    if (!no_more(&a->taken, &b->taken))
        return false;
    if (!frontiers->one_stage &&
        (a->seconds > b->seconds || a->forward_s > b->forward_s || a->once_s > b->once_s))
        return false;
    for (int rank = 0; (a->ranks >= 0 || b->ranks >= 0) && rank < list->ranks; rank++)
        if (!no_more(label_on(a, list->of, rank), label_on(b, list->of, rank)))
            return false;
    return true;
}

/* For each memory band, the fastest of all labels that take less memory than any label in it. */
struct bands {
    uint64_t least_bytes;
    double per_byte;
    double alone_s[BANDS]; /* INFINITY: no label takes less */
    struct label fastest[BANDS];
};

static size_t band_of(const struct bands *bands, const struct label *label)
{
    return (size_t)((double)(label->taken.bytes - bands->least_bytes) * bands->per_byte);
}

static void scale(struct bands *bands, const struct label *items, size_t count)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        least = items[i].taken.bytes < least ? items[i].taken.bytes : least;
        most = items[i].taken.bytes > most ? items[i].taken.bytes : most;
    }
    bands->least_bytes = least;
    bands->per_byte = (BANDS - 1) / ((double)(most - least) + 1);
}

static void note_fastest(struct bands *bands, size_t band, const struct label *label,
                         double seconds)
{
    if (seconds >= bands->alone_s[band])
        return;
    bands->alone_s[band] = seconds;
    bands->fastest[band] = *label;
}

static void fill(struct bands *bands, const struct frontiers *frontiers, const struct label *items,
                 size_t count)
{
    scale(bands, items, count);
    for (size_t band = 0; band < BANDS; band++)
        bands->alone_s[band] = INFINITY;
    for (size_t i = 0; i < count; i++)
        note_fastest(bands, band_of(bands, &items[i]) + 1, &items[i],
                     labels_alone_seconds(frontiers, &items[i]));
    for (size_t band = 1; band < BANDS; band++)
        note_fastest(bands, band, &bands->fastest[band - 1], bands->alone_s[band - 1]);
}

/* Most labels are dominated by the fastest of those with less memory; dropping them here saves
 * sorting them. Labels [first, end) have the same ends; those that remain move up. Returns their
 * new end. */
static size_t sift(const struct frontiers *frontiers, const struct label_list *list, size_t first,
                   size_t end)
{
    struct label *items = list->items;
    struct bands bands;
    size_t kept = first;
    fill(&bands, frontiers, &items[first], end - first);
    for (size_t i = first; i < end; i++) {
        size_t band = band_of(&bands, &items[i]);
        if (bands.alone_s[band] >= labels_alone_seconds(frontiers, &items[i]) ||
            !dominates(frontiers, list, &bands.fastest[band], &items[i]))
            items[kept++] = items[i];
    }
    return kept;
}

/* Labels [first, end) have the same ends; those kept are moved to items[kept] onwards. Returns
 * their new end. Comparisons start with the nearest predecessor, which usually takes least
 * memory. */
static size_t reduce(struct frontiers *frontiers, struct label_list *list, size_t first, size_t end,
                     size_t kept)
{
    struct label *items = list->items;
    size_t begin = kept;
    if (end - first > 1)
        end = sift(frontiers, list, first, end);
    if (end - first > 1)
        qsort_r(&items[first], end - first, sizeof *items, in_order, frontiers);
    for (size_t i = first; i < end; i++) {
        bool worse = false;
        for (size_t j = kept; j > begin && !worse; j--)
            worse = dominates(frontiers, list, &items[j - 1], &items[i]);
        if (!worse)
            items[kept++] = items[i];
    }
    return kept;
}

void labels_reduce(struct frontiers *frontiers, struct label_list *list)
{
    size_t pairs, kept = 0, *first = gather(list, &pairs);
    for (size_t pair = 0; pair < pairs; pair++)
        kept = reduce(frontiers, list, first[pair], first[pair + 1], kept);
    list->count = kept;
    free(first);
}
