/* copy.c - copies a box from one piece of a tensor to another, a contiguous range at a time, and
 * element by element if the two have different elements. */
#include "worker/kernels/plain/plain.h"

#include <assert.h>
#include <string.h>

/* Where the element at `index` (coordinates of the whole tensor) lies in the piece. */
static int64_t place_of(const struct box *box, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < box->dims; i++)
        at = at * box_length(box, i) + index[i] - box->low[i];
    return at;
}

/* The first dim from which on `part` is contiguous in both pieces. */
static int run_dim(const struct box *a, const struct box *b, const struct box *part)
{
    int first = part->dims;
    while (first > 0) {
        first--;
        if (box_length(part, first) != box_length(a, first) ||
            box_length(part, first) != box_length(b, first))
            break;
    }
    return first;
}

void plain_copy_run(const struct view *destination, int64_t to, const struct view *source,
                    int64_t from, int64_t count)
{
    size_t size = element_size(source->element);
    if (source->element == destination->element)
        memcpy((char *)destination->data + (size_t)to * size,
               (const char *)source->data + (size_t)from * size, (size_t)count * size);
    else
        for (int64_t i = 0; i < count; i++)
            put(destination, to + i, false, get(source, from + i));
}

void plain_copy_runs(const struct view *destination, const struct view *source,
                     const struct box *part, copy_run_fn *copy_run)
{
    assert(destination->box.dims == part->dims && source->box.dims == part->dims);
    if (box_count(part) == 0)
        return;
    int run = run_dim(&destination->box, &source->box, part);
    int64_t count = 1, index[DIMS_MAX];
    memcpy(index, part->low, sizeof index);
    for (int i = run; i < part->dims; i++)
        count *= box_length(part, i);
    for (;;) {
        copy_run(destination, place_of(&destination->box, index), source,
                 place_of(&source->box, index), count);
        int dim = run - 1;
        while (dim >= 0 && ++index[dim] == part->high[dim]) {
            index[dim] = part->low[dim];
            dim--;
        }
        if (dim < 0)
            return;
    }
}

void plain_copy(const struct view *destination, const struct view *source, const struct box *part)
{
    plain_copy_runs(destination, source, part, plain_copy_run);
}
