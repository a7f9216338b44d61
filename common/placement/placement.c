/* placement.c - which piece of a tensor a rank holds, and what follows from it. */
#include "common/placement/placement.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

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

struct shape shape_of(const struct tensor *tensor, int64_t samples)
{
    struct box box = tensor_box(tensor, samples);
    struct shape shape = {.dims = box.dims};
    memcpy(shape.dim, tensor->dims, (size_t)box.dims);
    memcpy(shape.size, box.high, sizeof shape.size);
    return shape;
}

struct box shape_box(const struct shape *shape)
{
    struct box box = {.dims = shape->dims};
    for (int i = 0; i < shape->dims; i++)
        box.high[i] = shape->size[i];
    return box;
}

struct placement placement_settled(const struct placement *placement)
{
    struct placement settled = *placement;
    settled.partial = 0;
    return settled;
}

unsigned placement_axes(const struct placement *placement, int dim)
{
    unsigned axes = 0;
    for (int i = 0; i < placement->count[dim]; i++)
        axes |= 1u << placement->axis[dim][i];
    return axes;
}

unsigned placement_split_axes(const struct placement *placement)
{
    unsigned axes = 0;
    for (int dim = 0; dim < DIMS_MAX; dim++)
        for (int i = 0; i < placement->count[dim]; i++)
            axes |= 1u << placement->axis[dim][i];
    return axes;
}

void placement_append(struct placement *placement, int dim, int axis)
{
    assert(placement->count[dim] < AXES_MAX);
    placement->axis[dim][placement->count[dim]++] = (uint8_t)axis;
}

/* Sums the weights of the devices that share this rank's coordinates on the `fixed` axes: of those
 * with a lower coordinate on `axis` than this rank's, of those with the same, and of all. */
static void share_of(const struct mesh *mesh, int rank, int axis, unsigned fixed, int64_t *before,
                     int64_t *own, int64_t *total)
{
    int mine = mesh_coordinate(mesh, rank, axis), count = mesh_count(mesh);
    *before = *own = *total = 0;
    for (int other = 0; other < count; other++) {
        bool behind = true;
        for (int i = 0; i < mesh->axes && behind; i++)
            behind = !(fixed >> i & 1) ||
                     mesh_coordinate(mesh, other, i) == mesh_coordinate(mesh, rank, i);
        if (!behind)
            continue;
        int coordinate = mesh_coordinate(mesh, other, axis);
        *before += coordinate < mine ? mesh->weights[other] : 0;
        *own += coordinate == mine ? mesh->weights[other] : 0;
        *total += mesh->weights[other];
    }
}

/* One dim of a rank's piece, cut by the weights of the devices. */
static void slice_by_weight(const struct mesh *mesh, const struct placement *placement, int dim,
                            int rank, struct box *box)
{
    unsigned fixed = 0;
    for (int i = 0; i < placement->count[dim]; i++) {
        int axis = placement->axis[dim][i];
        int64_t before, own, total, low = box->low[dim], length = box->high[dim] - low;
        share_of(mesh, rank, axis, fixed, &before, &own, &total);
        assert(total > 0);
        box->low[dim] = low + length * before / total;
        box->high[dim] = low + length * (before + own) / total;
        fixed |= 1u << axis;
    }
}

/* One dim of the piece at these coordinates, with equal weights: part i begins at
 * length * i / parts. Written so that the common case, a length that divides, avoids most
 * divisions: planning cuts pieces by the thousand. */
static void slice_dim(const struct mesh *mesh, const struct placement *placement, int dim,
                      const int *at, struct box *box)
{
    for (int i = 0; i < placement->count[dim]; i++) {
        int axis = placement->axis[dim][i];
        int64_t length = box->high[dim] - box->low[dim], parts = mesh->size[axis];
        int64_t part = length / parts, rest = length % parts;
        box->low[dim] += part * at[axis] + (rest ? rest * at[axis] / parts : 0);
        box->high[dim] = box->low[dim] + part;
        if (rest)
            box->high[dim] += rest * (at[axis] + 1) / parts - rest * at[axis] / parts;
    }
}

void placement_slice_dim(const struct mesh *mesh, const struct shape *shape,
                         const struct placement *placement, int dim, int rank, const int *at,
                         struct box *box)
{
    box->low[dim] = 0;
    box->high[dim] = shape->size[dim];
    if (shape->dim[dim] == 'b' && mesh->weights)
        slice_by_weight(mesh, placement, dim, rank, box);
    else
        slice_dim(mesh, placement, dim, at, box);
}

struct box placement_slice(const struct mesh *mesh, const struct shape *shape,
                           const struct placement *placement, int rank)
{
    struct box box = {.dims = shape->dims};
    int at[AXES_MAX];
    mesh_coordinates(mesh, rank, at);
    for (int dim = 0; dim < shape->dims; dim++)
        placement_slice_dim(mesh, shape, placement, dim, rank, at, &box);
    return box;
}

/* Advances to the coordinates of the group's next member. */
static void go_on(const struct mesh *mesh, unsigned axes, int *at)
{
    for (int axis = 0; axis < mesh->axes; axis++) {
        if (!(axes >> axis & 1))
            continue;
        if (++at[axis] < mesh->size[axis])
            return;
        at[axis] = 0;
    }
}

/* Members differ only along the dims that the axes split; the others are sliced once. */
static void slice_evenly(const struct mesh *mesh, const struct shape *shape,
                         const struct placement *placement, int rank, unsigned axes,
                         struct box *boxes)
{
    struct box common = shape_box(shape);
    int count = mesh_span(mesh, axes), at[AXES_MAX], cut[DIMS_MAX], cuts = 0;
    mesh_coordinates(mesh, rank, at);
    for (int dim = 0; dim < shape->dims; dim++)
        if (placement_axes(placement, dim) & axes)
            cut[cuts++] = dim;
        else
            slice_dim(mesh, placement, dim, at, &common);
    for (int axis = 0; axis < mesh->axes; axis++)
        at[axis] = axes >> axis & 1 ? 0 : at[axis];
    for (int i = 0; i < count; i++, go_on(mesh, axes, at)) {
        boxes[i] = common;
        for (int j = 0; j < cuts; j++)
            slice_dim(mesh, placement, cut[j], at, &boxes[i]);
    }
}

void placement_slices(const struct mesh *mesh, const struct shape *shape,
                      const struct placement *placement, int rank, unsigned axes, struct box *boxes)
{
    if (!mesh->weights) {
        slice_evenly(mesh, shape, placement, rank, axes, boxes);
        return;
    }
    int count = mesh_span(mesh, axes);
    int *ranks = xcalloc((size_t)count, sizeof *ranks);
    mesh_group(mesh, rank, axes, ranks);
    for (int i = 0; i < count; i++)
        boxes[i] = placement_slice(mesh, shape, placement, ranks[i]);
    free(ranks);
}

bool placement_divides(const struct mesh *mesh, const struct shape *shape,
                       const struct placement *placement, char *dim, int *parts)
{
    for (int i = 0; i < shape->dims && !shape->uneven; i++) {
        int span = mesh_span(mesh, placement_axes(placement, i));
        if (!dim_divides(shape->dim[i], shape->size[i], span)) {
            *dim = shape->dim[i];
            *parts = span;
            return false;
        }
    }
    return true;
}

unsigned placement_uneven_axes(const struct mesh *mesh, const struct shape *shape,
                               const struct placement *placement)
{
    unsigned axes = 0;
    for (int dim = 0; dim < shape->dims; dim++) {
        int64_t length = shape->size[dim];
        bool even = true;
        for (int i = 0; i < placement->count[dim]; i++) {
            int axis = placement->axis[dim][i];
            even = even && length % mesh->size[axis] == 0;
            axes |= even ? 0 : 1u << axis;
            length /= mesh->size[axis];
        }
    }
    return axes;
}

/* The pieces along all splitting axes make up the whole tensor once; every other axis repeats it.
 */
int64_t placement_elements(const struct mesh *mesh, const struct shape *shape,
                           const struct placement *placement)
{
    int64_t elements = mesh_span(mesh, ~placement_split_axes(placement));
    for (int dim = 0; dim < shape->dims; dim++)
        elements *= shape->size[dim];
    return elements;
}

char *placement_print(char *out, size_t size, const char *dims, const struct placement *placement)
{
    char *at = out, *end = out + size;
    for (int dim = 0; dims[dim] && at < end; dim++) {
        at += snprintf(at, (size_t)(end - at), "%c[", dims[dim]);
        for (int i = 0; i < placement->count[dim] && at < end; i++)
            at += snprintf(at, (size_t)(end - at), i ? ",%d" : "%d", placement->axis[dim][i]);
        if (at < end)
            at += snprintf(at, (size_t)(end - at), "] ");
    }
    if (at < end)
        at += snprintf(at, (size_t)(end - at), "+[");
    for (int axis = 0; axis < AXES_MAX && at < end; axis++)
        if (placement->partial >> axis & 1)
            at += snprintf(at, (size_t)(end - at), "%d", axis);
    if (at < end)
        snprintf(at, (size_t)(end - at), "]");
    return out;
}
