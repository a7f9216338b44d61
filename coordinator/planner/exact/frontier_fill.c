/* frontier_fill.c - extends, joins and drops labels.
 *
 * A label is dropped if it cannot fit; if its plan would take as long as one already known, even
 * with the least of all other blocks; or if another label with the same ends is nowhere worse. */
#include "coordinator/planner/exact/frontier_fill.h"

#include "common/base/memory.h"
#include "coordinator/planner/exact/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lower bound on a plan with this label on some stage: the slowest stage is no faster than the
 * mean, and the label's gradients are not ready before all backwards of its stage. */
static double least_step(const struct frontiers *frontiers, const struct label *label,
                         const struct least *others)
{
    const struct space_point *point = &frontiers->instance->point;
    if (frontiers->one_stage)
        return labels_alone_seconds(frontiers, label) + others->alone_s;
    const struct instance *instance = frontiers->instance;
    double sum = fmax(label->seconds + others->seconds, instance->sum_s);
    double longest = fmax(fmax(label->seconds, instance->longest_s), sum / point->stages);
    return (point->micro_batches - 1) * longest +
           fmax(sum, label->seconds + label->once_s + others->forward_s);
}

/* Lower bound that accounts for scarce memory. */
static double priced_step(const struct frontiers *frontiers, const struct frontier *frontier,
                          const struct label *label)
{
    const struct instance *instance = frontiers->instance;
    return memory_price_bound(&instance->price, instance->blocks, frontier->first, frontier->end,
                              label->seconds, label->once_s, label->taken.bytes);
}

/* The larger of both bounds. */
static double label_bound(const struct frontiers *frontiers, const struct frontier *frontier,
                          const struct label *label, const struct least *others)
{
    return fmax(least_step(frontiers, label, others), priced_step(frontiers, frontier, label));
}

/* Many labels share the bound that is common to all plans; they are then ordered by the bound that
 * prices memory. */
struct ranked_label {
    double least_s, priced_s;
    size_t index;
};

static int by_least(const void *first, const void *second)
{
    const struct ranked_label *a = first, *b = second;
    if (a->least_s != b->least_s)
        return a->least_s < b->least_s ? -1 : 1;
    if (a->priced_s != b->priced_s)
        return a->priced_s < b->priced_s ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Of more than `most` labels, keep the fastest half and, of the others, the smallest half. */
static void cut_off(struct frontiers *frontiers, const struct frontier *frontier,
                    const struct least *others, struct label_list *list)
{
    size_t most = frontiers->most;
    if (list->count <= most)
        return;
    struct ranked_label *ranked = xcalloc(list->count, sizeof *ranked);
    struct label *kept = xcalloc(most, sizeof *kept);
    for (size_t i = 0; i < list->count; i++)
        ranked[i] = (struct ranked_label){label_bound(frontiers, frontier, &list->items[i], others),
                                          priced_step(frontiers, frontier, &list->items[i]), i};
    qsort(ranked, list->count, sizeof *ranked, by_least);
    for (size_t i = most / 2; i < list->count; i++)
        ranked[i].least_s = (double)list->items[ranked[i].index].taken.bytes;
    qsort(&ranked[most / 2], list->count - most / 2, sizeof *ranked, by_least);
    for (size_t i = most; i < list->count; i++)
        frontiers->omitted_s =
            fmin(frontiers->omitted_s,
                 label_bound(frontiers, frontier, &list->items[ranked[i].index], others));
    for (size_t i = 0; i < most; i++)
        kept[i] = list->items[ranked[i].index];
    memcpy(list->items, kept, most * sizeof *kept);
    list->count = most;
    free(ranked);
    free(kept);
}

/* Join two runs of blocks, with memory as on the rank that has least of it. false: it does not fit
 * there. */
static bool join(const struct frontiers *frontiers, const struct frontier *frontier,
                 const struct label *left, const struct label *right, const struct part_cost *joint,
                 struct label *out)
{
    *out = (struct label){
        .seconds = left->seconds + right->seconds + joint->forward_s + joint->backward_s,
        .forward_s = left->forward_s + right->forward_s + joint->forward_s,
        .once_s = left->once_s + right->once_s + joint->once_s,
        .ranks = -1,
        .entry = left->entry,
        .exit = right->exit,
    };
    if (!frontiers->instance->relaxed)
        out->taken =
            taken_join(&left->taken, &right->taken, part_cost_bytes(joint, frontier->site->tight),
                       (uint64_t)frontier->slots);
    return taken_total(&out->taken) <= frontier->limit && isfinite(out->seconds);
}

static struct label label_of(struct frontiers *frontiers, const struct frontier *frontier,
                             const struct choice *choice)
{
    const struct part_cost *cost = &choice->cost;
    struct label label = {
        .seconds = cost->forward_s + cost->backward_s,
        .forward_s = cost->forward_s,
        .once_s = cost->once_s,
        .ranks = -1,
        .entry = choice->entry,
        .exit = choice->exit,
        .node = -1,
    };
    if (!frontiers->instance->relaxed)
        label.taken =
            taken_block(part_cost_bytes(cost, frontier->site->tight), (uint64_t)frontier->slots);
    return label;
}

static const struct choice *choices_of(const struct frontiers *frontiers, int stage, int block,
                                       size_t *count)
{
    const struct choices *all = instance_choices(frontiers->instance, stage, block);
    if (block == 0 && frontiers->firsts) {
        *count = frontiers->first_count;
        return frontiers->firsts;
    }
    if (block == frontiers->instance->blocks - 1 && frontiers->lasts) {
        *count = frontiers->last_count;
        return frontiers->lasts;
    }
    *count = all->count;
    return all->items;
}

static struct least find_others(const struct frontiers *frontiers, const struct frontier *frontier)
{
    const struct instance *instance = frontiers->instance;
    struct least all = instance_between(instance, 0, instance->blocks),
                 own = instance_between(instance, frontier->first, frontier->end);
    return (struct least){all.seconds - own.seconds, all.forward_s - own.forward_s,
                          all.alone_s - own.alone_s + instance->bases[0].once_s};
}

/* A frontier of a single block. */
static void fill_one(struct frontiers *frontiers, struct frontier *frontier, int stage)
{
    size_t count;
    const struct choice *choices = choices_of(frontiers, stage, frontier->first, &count);
    struct label_list list = labels_of(frontiers, frontier);
    struct least others = find_others(frontiers, frontier);
    for (size_t c = 0; c < count; c++) {
        struct label label = label_of(frontiers, frontier, &choices[c]);
        if (taken_total(&label.taken) > frontier->limit ||
            label_bound(frontiers, frontier, &label, &others) >= frontiers->upper_s)
            continue;
        label.node =
            frontiers_add_node(frontiers, (struct frontier_node){-1, -1, choices[c].strategy});
        labels_add_choice(&list, frontier, &label, &choices[c].cost);
    }
    labels_reduce(frontiers, &list);
    cut_off(frontiers, frontier, &others, &list);
    labels_hand_over(&list, frontier);
}

/* Where a run of blocks is split: the model's first block from all others, otherwise the last block
 * from the rest if blocks differ, otherwise equal blocks in the middle. */
static int find_cut(const struct frontiers *frontiers, const struct frontier *frontier)
{
    const int *place = frontiers->instance->costs->model.place;
    if (frontier->first == 0)
        return 1;
    if (place[frontier->first] != place[frontier->end - 1])
        return frontier->end - 1;
    return frontier->first + (frontier->end - frontier->first) / 2;
}

/* Combine every label of the left part with every label of the right part. */
static void fill_joined(struct frontiers *frontiers, struct frontier *frontier, int stage)
{
    int cut = find_cut(frontiers, frontier);
    const struct frontier *left = frontiers_get(frontiers, stage, frontier->first, cut),
                          *right = frontiers_get(frontiers, stage, cut, frontier->end);
    struct label_list list = labels_of(frontiers, frontier);
    struct least others = find_others(frontiers, frontier);
    frontiers->joined += (double)left->count * (double)right->count;
    for (size_t i = 0; i < left->count; i++) {
        for (size_t j = 0; j < right->count; j++) {
            const struct label *a = &left->labels[i], *b = &right->labels[j];
            const struct part_cost *joint =
                instance_joint(frontiers->instance, stage, cut - 1, a->exit, b->entry);
            struct label both;
            if (!join(frontiers, frontier, a, b, joint, &both) ||
                label_bound(frontiers, frontier, &both, &others) >= frontiers->upper_s)
                continue;
            /* the number of the pair, until the label is known to be kept */
            both.node = (int)(i * right->count + j);
            const struct joined from = {left, right, a, b, joint};
            labels_add_joined(&list, frontier, &both, &from);
        }
    }
    labels_reduce(frontiers, &list);
    cut_off(frontiers, frontier, &others, &list);
    for (size_t i = 0; i < list.count; i++) {
        size_t pair = (size_t)list.items[i].node;
        list.items[i].node = frontiers_add_node(
            // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
            frontiers, (struct frontier_node){.left = left->labels[pair / right->count].node,
                                              .right = right->labels[pair % right->count].node});
    }
    labels_hand_over(&list, frontier);
}

void frontier_fill(struct frontiers *frontiers, struct frontier *frontier, int stage)
{
    if (frontier->end - frontier->first == 1)
        fill_one(frontiers, frontier, stage);
    else
        fill_joined(frontiers, frontier, stage);
}
