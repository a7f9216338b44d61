/* tied_ends.c - if the first and the last block share weights, the cost of either depends on the
 * other's tie (costs_tie()). A point is therefore solved for one pair of ties after the other, best
 * bound first.
 *
 * With one stage the first block's cost is its own, and the last block's is what it adds. A tie of
 * the first is then bounded by the best way through all blocks but the last, to each entry of the
 * last, plus the least that the last block takes from there; and so is every choice of the last. */
#include "coordinator/planner/exact/tied_ends.h"

#include "common/base/memory.h"
#include "coordinator/planner/exact/partition.h"

#include <math.h>
#include <stdlib.h>

/* Choices that represent their ties, and a lower bound on plans with them. */
struct pair {
    int first, last; /* -1: all choices of the last block */
    double bound_s;
};

/* A choice of the last block. */
struct ranked_last {
    double floor_s; /* of m T + u */
    int entry;
    size_t index;
};

struct tied {
    struct frontiers *frontiers;
    struct instance *instance;
    const struct choices *firsts, *lasts; /* all choices */
    struct choice *first_set, *last_set;  /* those of the current pair, priced next to each other */
    /* With one stage: the last block's choices by entry, fastest first; and per entry their least
     * time and the least step without them. */
    struct ranked_last *ranked;
    double *floors, *leads;
};

/* m T + u of a part, as it counts with one stage. */
static double alone(const struct tied *tied, double seconds, double once_s)
{
    return tied->instance->point.micro_batches * seconds + once_s;
}

static int by_entry(const void *first, const void *second)
{
    const struct ranked_last *a = first, *b = second;
    if (a->entry != b->entry)
        return a->entry < b->entry ? -1 : 1;
    if (a->floor_s != b->floor_s)
        return a->floor_s < b->floor_s ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void rank_lasts(struct tied *tied)
{
    const struct choices *lasts = tied->lasts;
    for (int entry = 0; entry < lasts->entries; entry++)
        tied->floors[entry] = INFINITY;
    for (size_t i = 0; i < lasts->count; i++) {
        const struct choice *last = &lasts->items[i];
        double floor_s = alone(tied, last->floor_s, last->floor_once_s);
        tied->ranked[i] = (struct ranked_last){floor_s, last->entry, i};
        tied->floors[last->entry] = fmin(tied->floors[last->entry], floor_s);
    }
    if (lasts->count > 1)
        qsort(tied->ranked, lasts->count, sizeof *tied->ranked, by_entry);
}

/* Price the choice next to the other end's strategy. Returns 1 if that is possible, else 0. */
static size_t add_choice(struct tied *tied, int block, const struct choice *choice,
                         const struct strategy *partner, struct choice *out)
{
    int stages = tied->instance->point.stages, stage = block == 0 ? 0 : stages - 1;
    const struct site *const *sites = tied->instance->sites;
    struct tie tie = {sites[stages - 1 - stage], partner};
    *out = *choice;
    return costs_block(tied->instance->costs, sites[stage], block, &choice->strategy, &tie,
                       tied->instance->point.samples, &out->cost, NULL) == 0;
}

/* Add all choices with the same tie as choice `like`. Returns how many. */
static size_t add_like(struct tied *tied, int block, const struct choices *all, int like,
                       const struct strategy *partner, struct choice *out)
{
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].tie == all->items[like].tie)
            count += add_choice(tied, block, &all->items[i], partner, &out[count]);
    return count;
}

static void set_firsts(struct tied *tied, int like, const struct strategy *partner)
{
    frontiers_forget_ends(tied->frontiers);
    tied->frontiers->firsts = tied->first_set;
    tied->frontiers->first_count = add_like(tied, 0, tied->firsts, like, partner, tied->first_set);
}

/* For the first block's choices that are set, with one stage: fill `leads`. Returns a lower bound
 * on all plans. */
static double find_leads(struct tied *tied)
{
    struct instance *instance = tied->instance;
    int last = instance->blocks - 1;
    const struct frontier *before = frontiers_get(tied->frontiers, 0, 0, last);
    double least_s = INFINITY;
    for (int entry = 0; entry < tied->lasts->entries; entry++) {
        double lead_s = INFINITY;
        for (size_t i = 0; i < before->count; i++) {
            const struct label *label = &before->labels[i];
            double label_s = alone(tied, label->seconds, label->once_s) + instance->bases[0].once_s;
            if (label_s >= lead_s || label_s + tied->floors[entry] >= tied->frontiers->upper_s)
                continue;
            const struct part_cost *joint =
                instance_joint(instance, 0, last - 1, label->exit, entry);
            lead_s = fmin(
                lead_s, label_s + alone(tied, joint->forward_s + joint->backward_s, joint->once_s));
        }
        tied->leads[entry] = lead_s;
        least_s = fmin(least_s, lead_s + tied->floors[entry]);
    }
    return least_s;
}

/* Add the last block's choices except those that cannot be part of a fast enough plan and, if
 * memory is unlimited, those that take no less than another from the same entry. */
static size_t add_lasts(struct tied *tied, const struct strategy *partner)
{
    size_t count = 0;
    double best_s = INFINITY;
    for (size_t i = 0; i < tied->lasts->count; i++) {
        const struct ranked_last *ranked = &tied->ranked[i];
        struct choice *choice = &tied->last_set[count];
        if (i == 0 || ranked->entry != tied->ranked[i - 1].entry)
            best_s = INFINITY;
        if (tied->leads[ranked->entry] + ranked->floor_s >= tied->frontiers->upper_s ||
            (tied->instance->relaxed && ranked->floor_s >= best_s) ||
            !add_choice(tied, tied->instance->blocks - 1, &tied->lasts->items[ranked->index],
                        partner, choice))
            continue;
        best_s = fmin(best_s, alone(tied, choice->cost.forward_s + choice->cost.backward_s,
                                    choice->cost.once_s));
        count++;
    }
    return count;
}

static void set_pair(struct tied *tied, const struct pair *pair)
{
    struct frontiers *frontiers = tied->frontiers;
    const struct strategy *first = &tied->firsts->items[pair->first].strategy;
    if (pair->last < 0) {
        set_firsts(tied, pair->first, first);
        find_leads(tied);
        frontiers->last_count = add_lasts(tied, first);
    } else {
        set_firsts(tied, pair->first, &tied->lasts->items[pair->last].strategy);
        frontiers->last_count = add_like(tied, tied->instance->blocks - 1, tied->lasts, pair->last,
                                         first, tied->last_set);
    }
    frontiers->lasts = tied->last_set;
    frontiers_forget_ends(frontiers);
}

static int by_bound(const void *first, const void *second)
{
    const struct pair *a = first, *b = second;
    if (a->bound_s != b->bound_s)
        return a->bound_s < b->bound_s ? -1 : 1;
    return a->first != b->first ? a->first - b->first : a->last - b->last;
}

static bool is_new(const struct choices *choices, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (choices->items[i].tie == choices->items[index].tie)
            return false;
    return true;
}

/* Least of the choices with the same tie as choice `like`. */
static void find_floor(const struct choices *choices, int like, double *seconds, double *once_s)
{
    *seconds = *once_s = INFINITY;
    for (size_t i = 0; i < choices->count; i++) {
        const struct choice *choice = &choices->items[i];
        if (choice->tie != choices->items[like].tie)
            continue;
        *seconds = fmin(*seconds, choice->floor_s);
        *once_s = fmin(*once_s, choice->floor_once_s);
    }
}

/* Lower bound on a pipeline with the ends' choices of a pair. */
static double pair_bound(const struct tied *tied, const struct pair *pair)
{
    const struct instance *instance = tied->instance;
    double first, last, first_once, last_once;
    find_floor(tied->firsts, pair->first, &first, &first_once);
    find_floor(tied->lasts, pair->last, &last, &last_once);
    double sum = first + last, longest = fmax(fmax(first, last), instance->longest_s);
    sum += instance_between(instance, 1, instance->blocks - 1).seconds;
    return sum + first_once + instance->bases[0].once_s +
           (instance->point.micro_batches - 1) * fmax(longest, sum / instance->point.stages);
}

/* With one stage a pair is a tie of the first block together with all choices of the last. Returns
 * how many. */
static size_t list_alone(struct tied *tied, struct pair *pairs)
{
    size_t count = 0;
    rank_lasts(tied);
    for (size_t i = 0; i < tied->firsts->count; i++) {
        if (!is_new(tied->firsts, i))
            continue;
        set_firsts(tied, (int)i, &tied->firsts->items[i].strategy);
        pairs[count++] = (struct pair){(int)i, -1, find_leads(tied)};
    }
    return count;
}

static size_t list_pairs(const struct tied *tied, struct pair *pairs)
{
    size_t count = 0;
    for (size_t i = 0; i < tied->firsts->count; i++)
        for (size_t j = 0; j < tied->lasts->count && is_new(tied->firsts, i); j++)
            if (is_new(tied->lasts, j))
                pairs[count++] = (struct pair){(int)i, (int)j, 0};
    for (size_t i = 0; i < count; i++)
        pairs[i].bound_s = pair_bound(tied, &pairs[i]);
    return count;
}

static struct plan *solve_pairs(struct tied *tied, const struct pair *pairs, size_t count)
{
    struct frontiers *frontiers = tied->frontiers;
    struct plan *best = NULL;
    for (size_t i = 0; i < count && pairs[i].bound_s < frontiers->upper_s; i++) {
        if (i == frontiers->pairs) {
            frontiers->omitted_s = fmin(frontiers->omitted_s, pairs[i].bound_s);
            break;
        }
        set_pair(tied, &pairs[i]);
        struct plan *plan = partition_solve_set(frontiers);
        if (plan) {
            plan_destroy(best);
            best = plan;
        }
    }
    return best;
}

struct plan *tied_ends_solve(struct frontiers *frontiers)
{
    struct instance *instance = frontiers->instance;
    int stages = instance->point.stages;
    const struct choices *firsts = instance_choices(instance, 0, 0),
                         *lasts = instance_choices(instance, stages - 1, instance->blocks - 1);
    size_t entries = (size_t)lasts->entries;
    struct tied tied = {frontiers,
                        instance,
                        firsts,
                        lasts,
                        .first_set = xcalloc(firsts->count, sizeof(struct choice)),
                        .last_set = xcalloc(lasts->count, sizeof(struct choice)),
                        .ranked = xcalloc(lasts->count, sizeof(struct ranked_last)),
                        .floors = xcalloc(entries, sizeof(double)),
                        .leads = xcalloc(entries, sizeof(double))};
    struct pair *pairs = xcalloc(firsts->count * (stages == 1 ? 1 : lasts->count), sizeof *pairs);
    size_t count = stages == 1 ? list_alone(&tied, pairs) : list_pairs(&tied, pairs);
    if (count > 1)
        qsort(pairs, count, sizeof *pairs, by_bound);
    struct plan *best = solve_pairs(&tied, pairs, count);
    free(tied.first_set);
    free(tied.last_set);
    free(tied.ranked);
    free(tied.floors);
    free(tied.leads);
    free(pairs);
    return best;
}
