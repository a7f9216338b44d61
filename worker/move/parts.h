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

/* Whether a state is of this age, or gets there: armed, with a state of this age somewhere. */
bool offered_gives(const struct offered_state *state, const struct move_age *age);

/* Append what everybody is given, every element once; a rank's own elements come from itself, the
 * others from the ranks behind it in turn. Returns how many elements nobody has. */
int64_t parts_cut(const struct offer *offers, int ranks, size_t tensor_count,
                  const struct move_age *age, struct parts *out);
void parts_finish(struct parts *parts);

#endif
