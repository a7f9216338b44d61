/* redistribute.h - the collectives that turn one placement of a tensor into another on the same
 * mesh.
 *
 * In one step only the minor-most axis of a dim can be gathered, added or moved. Of all sequences
 * of steps the cheapest is taken; its cost is the words that all ranks receive plus a fixed price
 * per step and rank. Costs are integers and ties are broken by the order of enumeration, so that
 * programs are reproducible and never depend on a measured profile. Finally, neighbouring steps of
 * one kind are merged into one collective over the product of their axes. */
#ifndef COMMON_PLACEMENT_REDISTRIBUTE_H
#define COMMON_PLACEMENT_REDISTRIBUTE_H

#include "common/base/error.h"
#include "common/placement/placement.h"

enum step_kind {
    STEP_ALL_REDUCE,     /* a partial axis becomes a replicating one */
    STEP_REDUCE_SCATTER, /* a partial axis becomes the minor-most axis of a dim */
    STEP_ALL_GATHER,     /* the minor-most axis of a dim becomes a replicating one */
    STEP_ALL_TO_ALL,     /* the minor-most axis of a dim becomes that of another dim */
    STEP_PERMUTE,        /* two neighbouring axes of a dim change places */
    STEP_SLICE /* a replicating axis becomes the minor-most axis of a dim: no data moves */
};

struct step {
    enum step_kind kind;
    unsigned axes;       /* bit mask: the axes whose ranks exchange data; 0 for a slice */
    struct placement to; /* the placement after the step */
};

#define STEPS_MAX 24
/* The fixed price of a step, in words per rank. */
#define STEP_PRICE_WORDS 2048

/* Call found() with every single step that leads away from a placement, including those whose
 * result does not divide (see placement_divides). */
void step_enumerate(const struct mesh *mesh, const struct shape *shape,
                    const struct placement *from, void (*found)(void *context, const struct step *),
                    void *context);
/* The words (elements) that all ranks of the mesh together receive in one step; an all-reduce is
 * counted as a ring. */
int64_t step_words(const struct mesh *mesh, const struct shape *shape, const struct placement *from,
                   const struct step *step);
/* Find the cheapest path. Fills `steps`, which has room for STEPS_MAX, and returns their number, 0
 * when the placements are equal. -EINVAL when there is no path, for instance because `to` is
 * partial over an axis and `from` is not. */
int redistribute_path(const struct mesh *mesh, const struct shape *shape,
                      const struct placement *from, const struct placement *to, struct step *steps,
                      struct error *err);

#endif
