/* labels.h - lists of labels: what is nowhere better than another with the same ends is dropped. */
#ifndef COORDINATOR_PLANNER_LABELS_H
#define COORDINATOR_PLANNER_LABELS_H

#include "coordinator/planner/stage_frontier.h"

struct label_list {
    struct label *items;
    size_t count, capacity;
    int ranks; /* of the stage, that are told apart */
    struct taken *of;
    size_t of_count, of_capacity;
};

/* What the label takes on this rank. ranks: of its list. */
static inline const struct taken *label_on(const struct label *label, const struct taken *ranks,
                                           int rank)
{
    return label->ranks < 0 ? &label->taken : &ranks[label->ranks + rank];
}

/* Seconds of the whole step: what one stage alone minimizes. */
double labels_alone_seconds(const struct frontiers *frontiers, const struct label *label);
void labels_add(struct label_list *list, const struct label *label);
/* Room for what one label takes on each rank; its label is not in the list yet, and if it never is
 * the next one asks for the same room. */
struct taken *labels_ranks(struct label_list *list);
/* The label with those ranks. */
void labels_add_apart(struct label_list *list, const struct label *label);
/* Ranks of labels that were dropped go, too. */
void labels_pack(struct label_list *list);
/* Sorts, and keeps what is best in something. */
void labels_reduce(struct frontiers *frontiers, struct label_list *list);

#endif
