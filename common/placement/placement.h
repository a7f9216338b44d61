/* placement.h - how a tensor is distributed over the ranks of a mesh.
 *
 * A mesh axis plays one of three parts. It may split a dim of the tensor: every dim has an ordered
 * list of the axes that split it, major to minor. It may be partial: the ranks along it hold
 * summands of the same piece, and the tensor is their sum. Or it replicates: the ranks along it
 * hold copies.
 *
 * Everything rests on one routine, placement_slice(), which says what piece of the whole a rank
 * holds. Redistribution, sends between stages, checkpoints and moves from one plan to another are
 * all "fill my new box from the boxes of others". */
#ifndef COMMON_PLACEMENT_PLACEMENT_H
#define COMMON_PLACEMENT_PLACEMENT_H

#include "common/graph/shape.h"
#include "common/placement/mesh.h"

#include <string.h>

/* Placements are compared by memcmp, so unused entries must be 0. */
struct placement {
    uint8_t count[DIMS_MAX];          /* how many axes split each dim */
    uint8_t axis[DIMS_MAX][AXES_MAX]; /* which, major to minor */
    uint8_t partial;                  /* bit i: axis i is partial */
};

/* A whole tensor: its dims (letters, see graph/shape.h) and their sizes. */
struct shape {
    int dims;
    char dim[DIMS_MAX + 1];
    int64_t size[DIMS_MAX];
    bool uneven; /* any dim may be cut into unequal pieces (storage); else only b may be */
};

struct shape shape_of(const char *dims, const struct sizes *sizes);
struct box shape_box(const struct shape *shape);

static inline bool placement_equal(const struct placement *a, const struct placement *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* The placement after all partial sums are reduced: no axis is partial. */
struct placement placement_settled(const struct placement *placement);
/* The axes that split this dim. */
unsigned placement_axes(const struct placement *placement, int dim);
/* The axes that split any dim. */
unsigned placement_split_axes(const struct placement *placement);
/* Let `axis` split `dim` as its minor-most axis. */
void placement_append(struct placement *placement, int dim, int axis);

/* The piece that a rank holds. A range [low, low + n) is cut at low + n x cumulative share / total,
 * axis by axis from major to minor. Dropping the minor-most axis therefore gives exactly the union
 * of the pieces along it, even if they are unequal. Weights of the mesh apply to dim b only. */
struct box placement_slice(const struct mesh *mesh, const struct shape *shape,
                           const struct placement *placement, int rank);
/* The pieces of all members of the rank's group along these axes, in the order of mesh_group(). */
void placement_slices(const struct mesh *mesh, const struct shape *shape,
                      const struct placement *placement, int rank, unsigned axes,
                      struct box *boxes);
/* Is every dim that must be cut evenly a multiple of its number of pieces? If not, *dim is the
 * letter of the first that is not, and *parts the number of pieces. */
bool placement_divides(const struct mesh *mesh, const struct shape *shape,
                       const struct placement *placement, char *dim, int *parts);
/* The axes along which pieces differ in size, on a mesh without weights. */
unsigned placement_uneven_axes(const struct mesh *mesh, const struct shape *shape,
                               const struct placement *placement);
/* The elements of all ranks' pieces together, replicas and summands included. */
int64_t placement_elements(const struct mesh *mesh, const struct shape *shape,
                           const struct placement *placement);
/* Format for people as "b[0] s[] h[2,1] +[]": the axes of each dim, then the partial axes.
 * Truncated to `size`; returns `out`. */
char *placement_print(char *out, size_t size, const char *dims, const struct placement *placement);

#endif
