/* labels.h - lists of labels from which is dropped what does not fit on some rank, or is dominated
 * by another label with the same ends. */
#ifndef COORDINATOR_PLANNER_EXACT_LABELS_H
#define COORDINATOR_PLANNER_EXACT_LABELS_H

#include "coordinator/planner/exact/stage_frontier.h"

/* A list under construction; labels_hand_over() gives it to a frontier. */
struct label_list {
    struct label *items;
    size_t count, capacity;
    int ranks;        /* ranks of the stage that are told apart; 0: memory is unlimited */
    struct taken *of; /* memory per rank, of labels whose ranks differ */
    size_t of_count, of_capacity;
};

/* Origin of a label: one label of each of two frontiers, and the cost of joining them. */
struct joined {
    const struct frontier *left_of, *right_of;
    const struct label *left, *right;
    const struct part_cost *joint;
};

/* Memory that the label takes on a rank. ranks: the array of the label's list or frontier. */
static inline const struct taken *label_on(const struct label *label, const struct taken *ranks,
                                           int rank)
{
    return label->ranks < 0 ? &label->taken : &ranks[label->ranks + rank];
}

/* Seconds of the whole step, which is all that a single stage minimizes. */
static inline double labels_alone_seconds(const struct frontiers *frontiers,
                                          const struct label *label)
{
    return frontiers->instance->point.micro_batches * label->seconds + label->once_s;
}

/* An empty list for the labels of this frontier. */
struct label_list labels_of(const struct frontiers *frontiers, const struct frontier *frontier);
/* Add a label that fits on the rank with the least memory, if it fits on all others too. The first
 * is for a single block with this cost, the second for two joined runs. */
void labels_add_choice(struct label_list *list, const struct frontier *frontier,
                       const struct label *label, const struct part_cost *cost);
void labels_add_joined(struct label_list *list, const struct frontier *frontier,
                       const struct label *label, const struct joined *from);
/* Sort, and drop dominated labels. */
void labels_reduce(struct frontiers *frontiers, struct label_list *list);
/* Move the labels to the frontier; the list is empty afterwards. */
void labels_hand_over(struct label_list *list, struct frontier *frontier);

#endif
