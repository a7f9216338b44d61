/* mesh.c - coordinates of ranks, and groups of ranks along some axes. */
#include "common/placement/mesh.h"

int mesh_coordinate(const struct mesh *mesh, int rank, int axis)
{
    for (int i = 0; i < axis; i++)
        rank /= mesh->size[i];
    return rank % mesh->size[axis];
}

void mesh_coordinates(const struct mesh *mesh, int rank, int *at)
{
    for (int i = 0; i < mesh->axes; i++) {
        at[i] = rank % mesh->size[i];
        rank /= mesh->size[i];
    }
}

int mesh_group(const struct mesh *mesh, int rank, unsigned axes, int *members)
{
    int stride = 1, own = 0, count = 1, at[AXES_MAX];
    mesh_coordinates(mesh, rank, at);
    members[0] = rank;
    for (int i = 0; i < mesh->axes; i++) { /* repeat the members so far along each axis */
        if (axes >> i & 1) {
            own += at[i] * count;
            for (int m = 0; m < count; m++)
                members[m] -= at[i] * stride;
            for (int m = count; m < count * mesh->size[i]; m++)
                members[m] = members[m - count] + stride;
            count *= mesh->size[i];
        }
        stride *= mesh->size[i];
    }
    return own;
}
