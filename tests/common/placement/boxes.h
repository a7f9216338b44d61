/* boxes.h - simulated ranks: a rank is a box full of numbers.
 *
 * A step fills its new box from the boxes of its group and from nobody else's: copies, or sums
 * where a partial axis is reduced. What is read from other ranks is counted. */
#ifndef TESTS_COMMON_PLACEMENT_BOXES_H
#define TESTS_COMMON_PLACEMENT_BOXES_H

#include "tests/common/placement/situation.h"

struct holding {
    struct box box;
    double *data;
};

struct boxes {
    struct holding ranks[RANKS_MAX];
    int64_t words; /* read from others so far */
};

const char *step_name(enum step_kind kind);
/* Every rank's piece of one known whole. */
void boxes_fill(struct boxes *boxes, const struct situation *s, const struct placement *placement);
/* `what` begins the message of a failure. */
void boxes_step(struct boxes *boxes, const struct situation *s, const struct step *step,
                const char *what);
/* The pieces (where they are partial, their sums) are those of the whole. */
void boxes_check(struct boxes *boxes, const struct situation *s, const struct placement *placement,
                 const char *what);
void boxes_finish(struct boxes *boxes);

#endif
