/* mesh.h - the devices of a pipeline stage as a grid of small axes, fastest link first.
 *
 * The first axis varies fastest with the rank. Sets of axes are bit masks, bit i for axis i.
 * Devices may have weights, positive integers that say how large their shares of the samples are;
 * the share of a coordinate along an axis is the sum of the weights of the devices that have it. */
#ifndef COMMON_PLACEMENT_MESH_H
#define COMMON_PLACEMENT_MESH_H

#include <stdbool.h>
#include <stdint.h>

#define AXES_MAX 6

struct mesh {
    int axes;
    int size[AXES_MAX];
    const int *weights; /* one per rank, borrowed; NULL: all equal */
};

/* The number of ranks along these axes: the product of their sizes. */
static inline int mesh_span(const struct mesh *mesh, unsigned axes)
{
    int span = 1;
    for (int i = 0; i < mesh->axes; i++)
        span *= axes >> i & 1 ? mesh->size[i] : 1;
    return span;
}

/* The number of ranks of the whole mesh. */
static inline int mesh_count(const struct mesh *mesh)
{
    return mesh_span(mesh, ~0u);
}

int mesh_coordinate(const struct mesh *mesh, int rank, int axis);
/* The coordinates on all axes; `at` has room for mesh->axes. */
void mesh_coordinates(const struct mesh *mesh, int rank, int *at);
/* The ranks that differ from this one only on the given axes, itself included, in ascending order:
 * the same list for every member. Fills `members` with mesh_span() ranks and returns the index of
 * `rank` among them. */
int mesh_group(const struct mesh *mesh, int rank, unsigned axes, int *members);

#endif
