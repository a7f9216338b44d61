/* shape.c - arithmetic of boxes. */
#include "common/graph/shape.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int64_t sizes_get(const struct sizes *sizes, char dim)
{
    assert(dim >= 'a' && dim <= 'z');
    return sizes->of[dim - 'a'];
}

void sizes_set(struct sizes *sizes, char dim, int64_t size)
{
    assert(dim >= 'a' && dim <= 'z');
    sizes->of[dim - 'a'] = size;
}

struct box box_whole(const char *dims, const struct sizes *sizes)
{
    struct box box = {.dims = (int)strlen(dims)};
    assert(box.dims <= DIMS_MAX);
    for (int i = 0; i < box.dims; i++)
        box.high[i] = sizes_get(sizes, dims[i]);
    return box;
}

int64_t box_length(const struct box *box, int dim)
{
    return box->high[dim] - box->low[dim];
}

int64_t box_count(const struct box *box)
{
    int64_t count = 1;
    for (int i = 0; i < box->dims; i++)
        count *= box_length(box, i);
    return count;
}

bool box_equal(const struct box *a, const struct box *b)
{
    if (a->dims != b->dims)
        return false;
    for (int i = 0; i < a->dims; i++)
        if (a->low[i] != b->low[i] || a->high[i] != b->high[i])
            return false;
    return true;
}

bool box_overlap(const struct box *a, const struct box *b, struct box *out)
{
    assert(a->dims == b->dims);
    out->dims = a->dims;
    for (int i = 0; i < a->dims; i++) {
        out->low[i] = a->low[i] > b->low[i] ? a->low[i] : b->low[i];
        out->high[i] = a->high[i] < b->high[i] ? a->high[i] : b->high[i];
        if (out->low[i] >= out->high[i])
            return false;
    }
    return true;
}

bool box_contiguous(const struct box *box, const struct box *part, int64_t *offset)
{
    int64_t stride = 1, first = 0;
    bool cut = false; /* an inner dim is not taken whole: all outer ones must be of length 1 */
    for (int i = box->dims - 1; i >= 0; i--) {
        if (cut && box_length(part, i) != 1)
            return false;
        first += (part->low[i] - box->low[i]) * stride;
        stride *= box_length(box, i);
        cut = cut || box_length(part, i) != box_length(box, i);
    }
    *offset = first;
    return true;
}

char *box_print(char *out, size_t size, const struct box *box)
{
    size_t used = (size_t)snprintf(out, size, "[");
    for (int i = 0; i < box->dims && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld:%lld", i ? "," : "",
                                 (long long)box->low[i], (long long)box->high[i]);
    if (used < size)
        snprintf(out + used, size - used, "]");
    return out;
}
