/* mesh.h - the devices of a stage as a grid of small axes, fastest link first.
 *
 * The first axis varies fastest in the rank. Devices have weights, whole numbers: their share
 * of the samples; a coordinate's share is the sum of the weights of the devices behind it. */
#ifndef COMMON_PLACEMENT_MESH_H
#define COMMON_PLACEMENT_MESH_H

#include <stdbool.h>
#include <stdint.h>

#define AXES_MAX 6

struct mesh {
    int axes;
    int size[AXES_MAX];
    const int *weights; /* one per rank, lent; NULL: all equal */
};

/* Ranks along these axes (a bit mask) together. */
static inline int mesh_span(const struct mesh *mesh, unsigned axes)
{
    int span = 1;
    for (int i = 0; i < mesh->axes; i++)
        span *= axes >> i & 1 ? mesh->size[i] : 1;
    return span;
}

static inline int mesh_count(const struct mesh *mesh)
{
    return mesh_span(mesh, ~0u);
}

int mesh_coordinate(const struct mesh *mesh, int rank, int axis);
/* On all axes. */
void mesh_coordinates(const struct mesh *mesh, int rank, int *at);
/* The ranks that differ from this one on no axes but these, ascending: the same list on every
 * member. Fills members (mesh_span() of them) and returns the rank's own index. */
int mesh_group(const struct mesh *mesh, int rank, unsigned axes, int *members);

#endif
