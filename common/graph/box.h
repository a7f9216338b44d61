/* box.h - named dims, and boxes: rectangular pieces of a tensor.
 *
 * A dim is named by a letter: b batch, s sequence, t the keys' sequence, h hidden, n heads, d head
 * width, f ffn, v vocabulary (or classes), k key/value heads, g query heads per key/value head, p
 * numbers in an image patch. Roles split by letter (placement/role.h). A tensor's dims are written
 * as a string, "bsh", outermost first; tensors are row-major. */
#ifndef COMMON_GRAPH_BOX_H
#define COMMON_GRAPH_BOX_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIMS_MAX 5

/* Sizes of dims, by letter; 0: there is no such dim. */
struct sizes {
    int64_t of[26];
};

static inline int64_t sizes_get(const struct sizes *sizes, char dim)
{
    assert(dim >= 'a' && dim <= 'z');
    return sizes->of[dim - 'a'];
}

void sizes_set(struct sizes *sizes, char dim, int64_t size);
/* What people call the dim: where a job file has a key for it, that key. */
const char *sizes_word(char dim);

/* A piece of a tensor: the half-open range [low, high) along every dim, in coordinates of the whole
 * tensor. A box without dims is a scalar and has one element. */
struct box {
    int dims;
    int64_t low[DIMS_MAX], high[DIMS_MAX];
};

static inline int64_t box_length(const struct box *box, int dim)
{
    return box->high[dim] - box->low[dim];
}

/* The number of elements; 0 when any dim is empty. */
static inline int64_t box_count(const struct box *box)
{
    int64_t count = 1;
    for (int i = 0; i < box->dims; i++)
        count *= box_length(box, i);
    return count;
}

bool box_equal(const struct box *a, const struct box *b);
/* The intersection of two boxes with equally many dims; false, with *out undefined, when it is
 * empty. */
bool box_overlap(const struct box *a, const struct box *b, struct box *out);
/* Is `part`, which lies inside `box`, contiguous in a row-major buffer that holds `box`? If so,
 * *offset is the index of its first element. */
bool box_contiguous(const struct box *box, const struct box *part, int64_t *offset);
/* Copy `part`, which lies in both boxes, from the row-major buffer `in` that holds `from` to the
 * row-major buffer `out` that holds `to`. */
void box_copy(const struct box *from, const float *in, const struct box *to, float *out,
              const struct box *part);
/* Write `box` without `part`, which lies inside it, as disjoint boxes to `out`; returns how many.
 */
int box_subtract(const struct box *box, const struct box *part, struct box out[2 * DIMS_MAX]);
/* Format as "[0:4,8:16]" for people into `out`, truncated to `size`; returns `out`. */
char *box_print(char *out, size_t size, const struct box *box);

#endif
