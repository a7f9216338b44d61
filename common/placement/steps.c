/* steps.c - enumerates the single steps that lead away from a placement. */
#include "common/placement/redistribute.h"

static struct placement without_minor(const struct placement *from, int dim)
{
    struct placement to = *from;
    to.axis[dim][--to.count[dim]] = 0;
    return to;
}

static void enumerate_partial(const struct shape *shape, const struct placement *from, int axis,
                              void (*found)(void *, const struct step *), void *context)
{
    struct step step = {STEP_ALL_REDUCE, 1u << axis, *from};
    step.to.partial &= (uint8_t) ~(1u << axis);
    found(context, &step);
    step.kind = STEP_REDUCE_SCATTER;
    struct placement rest = step.to;
    for (int dim = 0; dim < shape->dims; dim++) {
        step.to = rest;
        placement_append(&step.to, dim, axis);
        found(context, &step);
    }
}

static void enumerate_split(const struct shape *shape, const struct placement *from, int dim,
                            void (*found)(void *, const struct step *), void *context)
{
    int minor = from->axis[dim][from->count[dim] - 1];
    struct placement gathered = without_minor(from, dim);
    struct step step = {STEP_ALL_GATHER, 1u << minor, gathered};
    found(context, &step);
    step.kind = STEP_ALL_TO_ALL;
    for (int other = 0; other < shape->dims; other++) {
        step.to = gathered;
        placement_append(&step.to, other, minor);
        if (other != dim)
            found(context, &step);
    }
    step.kind = STEP_PERMUTE;
    for (int i = 0; i + 1 < from->count[dim]; i++) {
        step.to = *from;
        step.to.axis[dim][i] = from->axis[dim][i + 1];
        step.to.axis[dim][i + 1] = from->axis[dim][i];
        step.axes = 0; /* if the dim is uneven, pieces move along all minor axes too */
        for (int j = i; j < from->count[dim]; j++)
            step.axes |= 1u << from->axis[dim][j];
        found(context, &step);
    }
}

void step_enumerate(const struct mesh *mesh, const struct shape *shape,
                    const struct placement *from, void (*found)(void *context, const struct step *),
                    void *context)
{
    for (int axis = 0; axis < mesh->axes; axis++)
        if (from->partial >> axis & 1)
            enumerate_partial(shape, from, axis, found, context);
    for (int dim = 0; dim < shape->dims; dim++)
        if (from->count[dim])
            enumerate_split(shape, from, dim, found, context);
    unsigned used = from->partial | placement_split_axes(from);
    for (int axis = 0; axis < mesh->axes; axis++) {
        for (int dim = 0; dim < shape->dims && !(used >> axis & 1); dim++) {
            struct step step = {STEP_SLICE, 0, *from};
            placement_append(&step.to, dim, axis);
            found(context, &step);
        }
    }
}
