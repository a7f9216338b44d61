/* box.c - arithmetic on boxes. */
#include "common/graph/box.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void sizes_set(struct sizes *sizes, char dim, int64_t size)
{
    assert(dim >= 'a' && dim <= 'z');
    sizes->of[dim - 'a'] = size;
}

const char *sizes_word(char dim)
{
    static const char *const words[26] = {
        ['d' - 'a'] = "head width", ['f' - 'a'] = "ffn",      ['g' - 'a'] = "heads of a group",
        ['h' - 'a'] = "hidden",     ['k' - 'a'] = "kv_heads", ['n' - 'a'] = "heads",
        ['p' - 'a'] = "patch",      ['s' - 'a'] = "seq",      ['v' - 'a'] = "vocab"};
    assert(dim >= 'a' && dim <= 'z');
    return words[dim - 'a'] ? words[dim - 'a'] : "a dim";
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
    bool cut = false; /* an inner dim is not taken whole: all outer dims must have length 1 */
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

/* The index of the element at these coordinates in a row-major buffer that holds the box. */
static int64_t place_in(const struct box *box, const int64_t *at)
{
    int64_t place = 0;
    for (int dim = 0; dim < box->dims; dim++)
        place = place * box_length(box, dim) + (at[dim] - box->low[dim]);
    return place;
}

/* Copies rows along the last dim, which are contiguous in both buffers. */
void box_copy(const struct box *from, const float *in, const struct box *to, float *out,
              const struct box *part)
{
    int last = part->dims - 1;
    int64_t at[DIMS_MAX], row = last >= 0 ? box_length(part, last) : 1;
    memcpy(at, part->low, sizeof at);
    for (int64_t rows = box_count(part) / row; rows > 0; rows--) {
        memcpy(out + place_in(to, at), in + place_in(from, at), (size_t)row * sizeof *out);
        for (int dim = last - 1; dim >= 0 && ++at[dim] == part->high[dim]; dim--)
            at[dim] = part->low[dim];
    }
}

/* Dim by dim, cuts off what lies below the part and what lies above it; `rest` shrinks to the part
 * on the dims done so far, so no two boxes overlap. */
int box_subtract(const struct box *box, const struct box *part, struct box out[2 * DIMS_MAX])
{
    struct box rest = *box;
    int count = 0;
    for (int i = 0; i < box->dims; i++) {
        if (rest.low[i] < part->low[i]) {
            out[count] = rest;
            out[count++].high[i] = part->low[i];
        }
        if (part->high[i] < rest.high[i]) {
            out[count] = rest;
            out[count++].low[i] = part->high[i];
        }
        rest.low[i] = part->low[i];
        rest.high[i] = part->high[i];
    }
    return count;
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
