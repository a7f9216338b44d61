/* shape.h - named dims, and boxes of a tensor.
 *
 * A dim is a letter: b batch, s seq, h hidden, n heads, d head width, f ffn, v vocab (or classes),
 * k heads of keys and values, g heads of queries for each of those, p numbers of a patch. The same
 * letter is the same size everywhere in a model, so that a table can say along which dim a
 * tensor is split. Tensors lie row-major in the order of their dims. */
#ifndef COMMON_GRAPH_SHAPE_H
#define COMMON_GRAPH_SHAPE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIMS_MAX 5

/* The size of every dim, by letter. */
struct sizes {
    int64_t of[26];
};

static inline int64_t sizes_get(const struct sizes *sizes, char dim)
{
    assert(dim >= 'a' && dim <= 'z');
    return sizes->of[dim - 'a'];
}

void sizes_set(struct sizes *sizes, char dim, int64_t size);

/* The half-open piece [low, high) of a whole tensor, dim by dim, in the whole's coordinates.
 * No dims: a scalar, one element. */
struct box {
    int dims;
    int64_t low[DIMS_MAX], high[DIMS_MAX];
};

struct box box_whole(const char *dims, const struct sizes *sizes);

static inline int64_t box_length(const struct box *box, int dim)
{
    return box->high[dim] - box->low[dim];
}

/* Elements; 0 when any dim is empty. */
static inline int64_t box_count(const struct box *box)
{
    int64_t count = 1;
    for (int i = 0; i < box->dims; i++)
        count *= box_length(box, i);
    return count;
}

bool box_equal(const struct box *a, const struct box *b);
/* What both hold; false when that is nothing. */
bool box_overlap(const struct box *a, const struct box *b, struct box *out);
/* Is `part` one run of memory inside `box`? Then *offset is its first element. */
bool box_contiguous(const struct box *box, const struct box *part, int64_t *offset);
/* Copy `part`, which lies in both boxes, from one row-major piece to another. */
void box_copy(const struct box *from, const float *in, const struct box *to, float *out,
              const struct box *part);
/* What of `box` is not in `part`, which lies in it, as boxes that lie apart; how many. */
int box_subtract(const struct box *box, const struct box *part, struct box out[2 * DIMS_MAX]);
/* "[0:4,8:16]" for people; at most size characters. */
char *box_print(char *out, size_t size, const struct box *box);

#endif
