/* labels.h - lists of labels: what is nowhere better than another with the same ends is dropped. */
#ifndef COORDINATOR_PLANNER_LABELS_H
#define COORDINATOR_PLANNER_LABELS_H

#include "coordinator/planner/stage_frontier.h"

struct label_list {
    struct label *items;
    size_t count, capacity;
};

/* Seconds of the whole step: what one stage alone minimizes. */
double labels_alone_seconds(const struct frontiers *frontiers, const struct label *label);
void labels_add(struct label_list *list, const struct label *label);
/* Sorts, and keeps what is best in something. */
void labels_reduce(struct frontiers *frontiers, struct label_list *list);

#endif
