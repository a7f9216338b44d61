/* redistribute.h - the way from one placement of a tensor to another on the same mesh.
 *
 * Only the minor-most axis of a dim may be gathered, added or moved in one step. The way is the
 * cheapest in whole numbers (words that all ranks receive + a fixed price per step and rank,
 * ties by the order of enumeration), so that a program never depends on a measured profile;
 * then neighbouring steps of one kind become one collective over the product of their axes. */
#ifndef COMMON_PLACEMENT_REDISTRIBUTE_H
#define COMMON_PLACEMENT_REDISTRIBUTE_H

#include "common/base/error.h"
#include "common/placement/placement.h"

enum step_kind {
    STEP_ALL_REDUCE,
    STEP_REDUCE_SCATTER,
    STEP_ALL_GATHER,
    STEP_ALL_TO_ALL,
    STEP_PERMUTE,
    STEP_SLICE
};

struct step {
    enum step_kind kind;
    unsigned axes; /* of the group in which data moves; none for a slice */
    struct placement to;
};

#define STEPS_MAX 24
/* A step is worth this many words to each rank. */
#define STEP_PRICE_WORDS 2048

const char *step_name(enum step_kind kind);
/* Every single step from a placement: calls with each; legal or not. */
void step_enumerate(const struct mesh *mesh, const struct shape *shape,
                    const struct placement *from, void (*found)(void *context, const struct step *),
                    void *context);
/* Words that all ranks of the mesh together receive in one step (an all-reduce as a ring). */
int64_t step_words(const struct mesh *mesh, const struct shape *shape, const struct placement *from,
                   const struct step *step);
/* Fills steps (at most STEPS_MAX) and returns how many there are, 0 when nothing moves; or
 * -EINVAL: no way, as when `to` is an unfinished sum and `from` is not. */
int redistribute_path(const struct mesh *mesh, const struct shape *shape,
                      const struct placement *from, const struct placement *to, struct step *steps,
                      struct error *err);

#endif
