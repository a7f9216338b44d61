/* parts.h - determines who gives what to whom, by cutting wanted boxes along the boxes that are
 * held. */
#ifndef WORKER_MOVE_PARTS_H
#define WORKER_MOVE_PARTS_H

#include "worker/move/offer.h"

/* A piece of one tensor, from a state of rank `from` to the new state of rank `to`. */
struct part {
    int to, from;
    size_t state;
    int tensor;
    struct box box;
};

struct parts {
    struct part *items;
    size_t count, capacity;
};

/* The wanted state, and the metrics of its last step; NULL: nobody knows them. */
struct target {
    struct move_age age;
    const float *metrics;
};

/* Whether a state is of the target's age, or can get there: it is armed for that step, and the
 * metrics are known. */
bool offered_gives(const struct offered_state *state, const struct target *target);

/* Append what everybody is given, every element once. A rank's own elements come from itself,
 * others from the ranks after it in turn. Returns the number of elements that nobody has. */
int64_t parts_cut(const struct offer *offers, int ranks, size_t tensor_count,
                  const struct target *target, struct parts *out);
/* The number of elements that nobody has, of what rank `to` wants of a tensor. */
int64_t parts_missing(const struct offer *offers, int ranks, int to, int tensor,
                      const struct target *target);
void parts_finish(struct parts *parts);

#endif
