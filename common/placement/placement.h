/* placement.h - where the pieces of a tensor lie on a mesh.
 *
 * Per dim of the tensor an ordered list of axes splits it (major to minor); over the partial
 * axes every rank holds a summand of the same piece; an axis in neither is broadcast: replicas.
 *
 * Everything rests on one routine, placement_slice: which piece of the whole a rank holds.
 * Redistribution, sends between stages, checkpoints and moves between plans are "fill my new
 * box from the boxes of others". */
#ifndef COMMON_PLACEMENT_PLACEMENT_H
#define COMMON_PLACEMENT_PLACEMENT_H

#include "common/graph/shape.h"
#include "common/placement/mesh.h"

#include <string.h>

/* Compared by memcmp: unused entries are 0. */
struct placement {
    uint8_t count[DIMS_MAX];
    uint8_t axis[DIMS_MAX][AXES_MAX];
    uint8_t partial; /* bit per axis */
};

/* A whole tensor: its dims and their sizes. */
struct shape {
    int dims;
    char dim[DIMS_MAX + 1];
    int64_t size[DIMS_MAX];
    bool uneven; /* storage: every dim may be cut unevenly; else only b */
};

struct shape shape_of(const char *dims, const struct sizes *sizes);
struct box shape_box(const struct shape *shape);

static inline bool placement_equal(const struct placement *a, const struct placement *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* The same without unfinished sums. */
struct placement placement_settled(const struct placement *placement);
/* Axes that split dim i; axes that split any dim. */
unsigned placement_axes(const struct placement *placement, int dim);
unsigned placement_split_axes(const struct placement *placement);
void placement_append(struct placement *placement, int dim, int axis); /* minor-most */

/* The piece that a rank holds. Cuts are low + n * cumulative share / total, nested axis by
 * axis: without the minor-most axis it is exactly the union of the pieces, uneven or not. */
struct box placement_slice(const struct mesh *mesh, const struct shape *shape,
                           const struct placement *placement, int rank);
/* The same of all members of its group along these axes, in the order of mesh_group(). */
void placement_slices(const struct mesh *mesh, const struct shape *shape,
                      const struct placement *placement, int rank, unsigned axes,
                      struct box *boxes);
/* Does every cut that must divide divide? If not, *dim and *parts say which does not. */
bool placement_divides(const struct mesh *mesh, const struct shape *shape,
                       const struct placement *placement, char *dim, int *parts);
/* Axes along which pieces are of unlike sizes, on a mesh of devices with equal weights. */
unsigned placement_uneven_axes(const struct mesh *mesh, const struct shape *shape,
                               const struct placement *placement);
/* Elements of all ranks' pieces together. */
int64_t placement_elements(const struct mesh *mesh, const struct shape *shape,
                           const struct placement *placement);
/* "b[0] s[] h[2,1] +[]" for people; at most size characters. */
char *placement_print(char *out, size_t size, const char *dims, const struct placement *placement);

#endif
