/* suffixes.h - what may follow some stage, without what is dominated.
 *
 * For the stages from i on a suffix keeps S, the sum of T; X, the largest T; and R, the largest of
 * u_k less the backwards from i to k. Prepending a stage makes S + T, max(X, T) and max(u, R - B);
 * the step is S + (m - 1) X + R. One suffix dominates another with the same crossing if its S, X
 * and S + R are no larger. */
#ifndef COORDINATOR_PLANNER_EXACT_SUFFIXES_H
#define COORDINATOR_PLANNER_EXACT_SUFFIXES_H

#include <stddef.h>

/* The stages from some stage on, which the first block enters with these ends. */
struct suffix {
    double sum_s, longest_s, rest_s;
    double least_s; /* lower bound on the whole step */
    /* exit of the preceding block and entry of the first one: the crossing into it */
    int before, entry;
    int end, node; /* blocks of its first stage, and the node of its label */
    int next;      /* index among the suffixes of the next stage that begin at `end`; -1: none */
};

struct suffixes {
    struct suffix *items;
    size_t count, capacity;
};

/* Add a suffix to others with its crossing, none of which dominates another, and drop what is
 * dominated. Of suffixes that dominate each other the first in order is kept, and of those that
 * are equal in order the first that was added. The list is in no order. */
void suffixes_offer(struct suffixes *list, const struct suffix *suffix);
/* Move all suffixes to the end of `out`, in order; the list is empty afterwards and keeps its
 * memory. */
void suffixes_move(struct suffixes *list, struct suffixes *out);
/* Keep the `most` fastest, in order of their lower bounds. Returns the least bound of those that
 * were dropped; infinity: none were. */
double suffixes_cut_off(struct suffixes *list, size_t most);

#endif
