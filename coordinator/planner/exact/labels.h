/* labels.h - lists of labels: what does not fit on some rank, or is nowhere better than another
 * with the same ends, is left out. */
#ifndef COORDINATOR_PLANNER_EXACT_LABELS_H
#define COORDINATOR_PLANNER_EXACT_LABELS_H

#include "coordinator/planner/exact/stage_frontier.h"

struct label_list {
    struct label *items;
    size_t count, capacity;
    int ranks; /* of the stage, that are told apart; 0: memory is no object */
    struct taken *of;
    size_t of_count, of_capacity;
};

/* How a label came about: one of each of two frontiers, and what joins them. */
struct joined {
    const struct frontier *left_of, *right_of;
    const struct label *left, *right;
    const struct part_cost *joint;
};

/* What the label takes on this rank. ranks: of its list. */
static inline const struct taken *label_on(const struct label *label, const struct taken *ranks,
                                           int rank)
{
    return label->ranks < 0 ? &label->taken : &ranks[label->ranks + rank];
}

/* Seconds of the whole step: what one stage alone minimizes. */
static inline double labels_alone_seconds(const struct frontiers *frontiers,
                                          const struct label *label)
{
    return frontiers->instance->point.micro_batches * label->seconds + label->once_s;
}

/* An empty list, for the labels of this frontier. */
struct label_list labels_of(const struct frontiers *frontiers, const struct frontier *frontier);
/* Labels that fit on the rank that has least memory: those are added that fit on all. Of one block
 * that costs so much; or of two runs. */
void labels_add_choice(struct label_list *list, const struct frontier *frontier,
                       const struct label *label, const struct part_cost *cost);
void labels_add_joined(struct label_list *list, const struct frontier *frontier,
                       const struct label *label, const struct joined *from);
/* Sorts, and keeps what is best in something. */
void labels_reduce(struct frontiers *frontiers, struct label_list *list);
/* They are the frontier's. */
void labels_hand_over(struct label_list *list, struct frontier *frontier);

#endif
