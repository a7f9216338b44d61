/* attention.h - the layout of attention heads, and how threads share them; for core.c and
 * core_backward.c.
 *
 * A head of q, k or v is a matrix whose rows are heads x width numbers apart, and matrix products
 * read it in place. Queries are processed in blocks. A causal block sees the keys up to its last
 * query, so half of the work is skipped, apart from the blocks on the diagonal. Formulas:
 * plain/core.c.
 *
 * Each team (one thread) takes whole heads of keys, with all query heads that share them. The
 * workspace of s_q x s_k scores is divided between teams, which limits the size of a block. */
#ifndef WORKER_KERNELS_CPU_ATTENTION_H
#define WORKER_KERNELS_CPU_ATTENTION_H

#include "worker/kernels/call.h"
#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/product.h"

#define ATTENTION_BLOCK 64 /* queries */

/* The operands of a call. */
enum { Q, K, V, Y, LOGSUM };

struct attention {
    const struct kernel_call *call;
    enum element element;
    int64_t batch, queries, keys, width;
    int64_t heads, group; /* heads of keys; query heads per head of keys */
    int64_t first;        /* index, among the keys here, of the key at the first query's position */
    bool causal;
    float scale;
    int64_t teams, block;
    bool sums; /* backward: sum gradients of k and v in f32, behind the scores */
};

/* Indices of a query head and of the key head it attends to; each counts over batch and heads. */
struct head {
    int64_t query, key;
};

/* What a call computes, and how it is divided between the threads of the caller. */
struct attention attention_of(const struct kernel_call *call, enum direction direction);

/* The first key head of a team. */
static inline int64_t attention_first_key(const struct attention *a, int64_t team)
{
    return a->batch * a->heads * team / a->teams;
}

static inline struct head attention_head(const struct attention *a, int64_t key, int64_t member)
{
    return (struct head){key * a->group + member, key};
}

/* How many keys query i sees: all or, if causal, those up to its own position. */
static inline int64_t attention_visible(const struct attention *a, int64_t i)
{
    int64_t count = a->causal ? a->first + i + 1 : a->keys;
    return count < 0 ? 0 : count < a->keys ? count : a->keys;
}

/* Head `head` of a tensor (b, s, heads, d), from position `place` of the sequence on. */
static inline struct matrix attention_matrix(const struct attention *a, const struct view *view,
                                             int64_t heads, int64_t head, int64_t place)
{
    int64_t seq = box_length(&view->box, 1);
    int64_t at = ((head / heads * seq + place) * heads + head % heads) * a->width;
    return (struct matrix){from_number(view->data, view->element, at), heads * a->width, false};
}

static inline struct matrix attention_queries(const struct attention *a, const struct view *view,
                                              int64_t head, int64_t place)
{
    return attention_matrix(a, view, a->heads * a->group, head, place);
}

static inline struct matrix attention_keys(const struct attention *a, const struct view *view,
                                           int64_t head, bool transposed)
{
    struct matrix matrix = attention_matrix(a, view, a->heads, head, 0);
    matrix.transposed = transposed;
    return matrix;
}

/* Unscaled scores x y' of a block: out is (rows, seen) in f32; x has `rows` queries, y is already
 * read as its transpose. */
void attention_scores(const struct attention *a, struct matrix x, struct matrix y, int64_t rows,
                      int64_t seen, float *out);
/* Convert rows of f32 to the call's element in place, multiplying row i by by[i] unless `by` is
 * NULL. For f32 nothing is done. Returns the resulting matrix. */
struct matrix attention_round(const struct attention *a, float *scores, int64_t rows, int64_t seen,
                              const float *by);

#endif
