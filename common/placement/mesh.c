/* mesh.c - coordinates and groups. */
#include "common/placement/mesh.h"

int mesh_count(const struct mesh *mesh)
{
    return mesh_span(mesh, ~0u);
}

int mesh_coordinate(const struct mesh *mesh, int rank, int axis)
{
    for (int i = 0; i < axis; i++)
        rank /= mesh->size[i];
    return rank % mesh->size[axis];
}

int mesh_span(const struct mesh *mesh, unsigned axes)
{
    int span = 1;
    for (int i = 0; i < mesh->axes; i++)
        if (axes >> i & 1)
            span *= mesh->size[i];
    return span;
}

int mesh_group(const struct mesh *mesh, int rank, unsigned axes, int *members)
{
    int base = 0, stride = 1, own = 0, step[AXES_MAX], size[AXES_MAX], count = 0, scale = 1;
    for (int i = 0; i < mesh->axes; i++) {
        int coordinate = mesh_coordinate(mesh, rank, i);
        if (axes >> i & 1) {
            step[count] = stride;
            size[count++] = mesh->size[i];
            own += coordinate * scale;
            scale *= mesh->size[i];
        } else {
            base += coordinate * stride;
        }
        stride *= mesh->size[i];
    }
    for (int index = 0; index < scale; index++) {
        int member = base, rest = index;
        for (int i = 0; i < count; i++) {
            member += rest % size[i] * step[i];
            rest /= size[i];
        }
        members[index] = member;
    }
    return own;
}
