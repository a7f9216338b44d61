/* attention.h - where attention's heads lie, and how threads share them: core.c, core_backward.c.
 *
 * A head of q, k or v is a matrix whose rows are heads x width apart: products take it where it
 * lies. A block of queries sees the keys up to its last query, so that half of the work is skipped
 * but for the blocks on the diagonal. Formulas: plain/core.c. Each team, of one thread, takes
 * heads of keys with all heads of queries that share them; the workspace of s_q s_k scores is cut
 * between teams, which bounds the block. */
#ifndef WORKER_KERNELS_CPU_ATTENTION_H
#define WORKER_KERNELS_CPU_ATTENTION_H

#include "worker/kernels/call.h"
#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/product.h"

#define ATTENTION_BLOCK 64 /* queries */

enum { Q, K, V, Y, LOGSUM };

struct attention {
    const struct kernel_call *call;
    enum element element;
    int64_t batch, queries, keys, width;
    int64_t heads, group; /* of keys; of queries for each of them */
    int64_t first;        /* key of the first query */
    bool causal;
    float scale;
    int64_t teams, block;
    bool sums; /* backward: gradients of k and v are summed in f32 behind the scores */
};

/* A head of queries, and that of keys which it looks at: batch and head in one. */
struct head {
    int64_t query, key;
};

struct attention attention_of(const struct kernel_call *call, enum direction direction);

/* Of all heads of keys those of a team. */
static inline int64_t attention_first_key(const struct attention *a, int64_t team)
{
    return a->batch * a->heads * team / a->teams;
}

static inline struct head attention_head(const struct attention *a, int64_t key, int64_t member)
{
    return (struct head){key * a->group + member, key};
}

/* Keys that query i sees: all, or those up to its own place. */
static inline int64_t attention_visible(const struct attention *a, int64_t i)
{
    int64_t count = a->causal ? a->first + i + 1 : a->keys;
    return count < 0 ? 0 : count < a->keys ? count : a->keys;
}

/* Head `head` of a tensor (b, s, heads, d), from a place of the sequence on. */
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

/* Scores (rows, seen) of a block from query `place` on: x y', not scaled, in f32. */
void attention_scores(const struct attention *a, struct matrix x, struct matrix y, int64_t rows,
                      int64_t seen, float *out);
/* Rows of f32 become rows of the calls' element at the same place, times `by`; the matrix that
 * they then are. */
struct matrix attention_round(const struct attention *a, float *scores, int64_t rows, int64_t seen,
                              const float *by);

#endif
