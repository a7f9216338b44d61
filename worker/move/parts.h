/* parts.h - who gives what to whom: a box that is wanted, cut along the boxes that are held. */
#ifndef WORKER_MOVE_PARTS_H
#define WORKER_MOVE_PARTS_H

#include "worker/move/offer.h"

/* Of one tensor, from a state of a rank to the new state of a rank. */
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

/* The state that is wanted, and the metrics of its last step; NULL: nobody knows them. */
struct target {
    struct move_age age;
    const float *metrics;
};

/* Whether a state is of the target's age, or gets there: armed, where the metrics are known. */
bool offered_gives(const struct offered_state *state, const struct target *target);

/* Append what everybody is given, every element once; a rank's own elements come from itself, the
 * others from the ranks behind it in turn. Returns how many elements nobody has. */
int64_t parts_cut(const struct offer *offers, int ranks, size_t tensor_count,
                  const struct target *target, struct parts *out);
/* Of what one rank wants of a tensor. */
int64_t parts_missing(const struct offer *offers, int ranks, int to, int tensor,
                      const struct target *target);
void parts_finish(struct parts *parts);

#endif
