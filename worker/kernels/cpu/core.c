/* core.c - causal attention by matrix products on blocks of queries.
 *
 * A head of q, k or v is a matrix whose rows are n d apart: products take it where it lies. A
 * block of queries sees the keys up to its last query, so that half of the work is skipped but
 * for the blocks on the diagonal. Formulas: plain/core.c. Threads share out heads; the
 * workspace of s_q s_k scores is cut between them, which bounds the block. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/exponential.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/cpu/sgemm.h"

#include <math.h>
#include <string.h>

#define BLOCK 64 /* queries */

enum { Q, K, V, Y, LOGSUM };

struct attention {
    const struct kernel_call *call;
    int64_t batch, queries, keys, heads, width, first; /* first: key of the first query */
    int64_t block, groups; /* groups of heads, one a thread, each with scores of a block */
    float scale;
    float *workspace;
};

static struct attention attention_of(const struct kernel_call *call)
{
    const struct box *q = &call->operand[Q].box, *k = &call->operand[K].box;
    struct attention a = {
        .call = call,
        .batch = box_length(q, 0),
        .queries = box_length(q, 1),
        .keys = box_length(k, 1),
        .heads = box_length(q, 2),
        .width = box_length(q, 3),
        .first = q->low[1] - k->low[1],
        .scale = 1 / sqrtf((float)box_length(q, 3)),
        .workspace = call->workspace,
    };
    int64_t threads = parallel_threads();
    a.groups = threads < a.queries ? threads : a.queries;
    if (a.groups > a.batch * a.heads)
        a.groups = a.batch * a.heads;
    a.block = a.groups > 0 && a.queries / a.groups < BLOCK ? a.queries / a.groups : BLOCK;
    return a;
}

/* Keys that query i sees: those up to its own place. */
static int64_t visible(const struct attention *a, int64_t i)
{
    int64_t count = a->first + i + 1;
    return count < 0 ? 0 : count < a->keys ? count : a->keys;
}

/* Place `place` of head `head` (of batch x heads) in a tensor (b, s, n, d) of `seq` places. */
static float *at(const struct attention *a, const struct view *view, int64_t seq, int64_t head,
                 int64_t place)
{
    int64_t b = head / a->heads, n = head % a->heads;
    return (float *)view->data + ((b * seq + place) * a->heads + n) * a->width;
}

static struct matrix queries_of(const struct attention *a, const struct view *view, int64_t head,
                                int64_t first)
{
    return (struct matrix){at(a, view, a->queries, head, first), a->heads * a->width, 0};
}

static struct matrix keys_of(const struct attention *a, const struct view *view, int64_t head,
                             int transposed)
{
    return (struct matrix){at(a, view, a->keys, head, 0), a->heads * a->width, transposed};
}

/* Scores to exponentials less the largest; returns their sum's inverse, and its logarithm (-inf
 * where the query sees nothing). What it does not see becomes 0. */
VECTORISED static float softmax(float *p, int64_t seen, int64_t count, float *logsum)
{
    float largest = -INFINITY, sum = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t j = 0; j < seen; j++)
        largest = p[j] > largest ? p[j] : largest;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < seen; j++) {
        p[j] = exponential(p[j] - largest);
        sum += p[j];
    }
    for (int64_t j = seen; j < count; j++)
        p[j] = 0;
    *logsum = seen > 0 ? largest + logf(sum) : -INFINITY;
    return seen > 0 ? 1 / sum : 0;
}

VECTORISED static void scale_row(float *row, int64_t count, float by)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        row[i] *= by;
}

static void forward_block(const struct attention *a, int64_t head, int64_t first, float *p)
{
    const struct kernel_call *call = a->call;
    int64_t rows = a->queries - first < a->block ? a->queries - first : a->block;
    int64_t seen = visible(a, first + rows - 1), stride = a->heads * a->width;
    float *logsum = (float *)call->operand[LOGSUM].data + head * a->queries + first;
    float *y = at(a, &call->operand[Y], a->queries, head, first);
    float inverse[BLOCK];
    sgemm(rows, seen, a->width, a->scale, queries_of(a, &call->operand[Q], head, first),
          keys_of(a, &call->operand[K], head, 1), 0, p, seen);
    for (int64_t i = 0; i < rows; i++)
        inverse[i] = softmax(p + i * seen, visible(a, first + i), seen, &logsum[i]);
    sgemm(rows, a->width, seen, 1, (struct matrix){p, seen, 0},
          keys_of(a, &call->operand[V], head, 0), 0, y, stride);
    for (int64_t i = 0; i < rows; i++)
        scale_row(y + i * stride, a->width, inverse[i]);
}

static void forward_group(const struct attention *a, int64_t group)
{
    int64_t heads = a->batch * a->heads;
    float *p = a->workspace + group * a->block * a->keys;
    for (int64_t head = heads * group / a->groups; head < heads * (group + 1) / a->groups; head++)
        for (int64_t first = 0; first < a->queries; first += a->block)
            forward_block(a, head, first, p);
}

static void forward_groups(const void *context, int64_t first, int64_t end)
{
    for (int64_t group = first; group < end; group++)
        forward_group(context, group);
}

static void forward(const struct kernel_call *call)
{
    struct attention a = attention_of(call);
    parallel(a.groups, 1, forward_groups, &a);
}

/* Row i of P from its scores, and of dS from its dP. */
VECTORISED static void row_gradients(float *p, float *ds, int64_t seen, int64_t count, float logsum,
                                     float mean, float scale)
{
#pragma omp simd
    for (int64_t j = 0; j < seen; j++) {
        p[j] = exponential(p[j] - logsum);
        ds[j] = p[j] * (ds[j] - mean) * scale;
    }
    for (int64_t j = seen; j < count; j++)
        p[j] = ds[j] = 0;
}

VECTORISED static float dot(const float *a, const float *b, int64_t count)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* P and dS of the block, (rows, seen). */
static void block_scores(const struct attention *a, int64_t head, int64_t first, int64_t rows,
                         int64_t seen, float *p, float *ds)
{
    const struct kernel_call *call = a->call;
    int64_t stride = a->heads * a->width;
    const float *logsum = (float *)call->operand[LOGSUM].data + head * a->queries + first;
    const float *y = at(a, &call->operand[Y], a->queries, head, first);
    const float *dy = at(a, &call->gradient[Y], a->queries, head, first);
    sgemm(rows, seen, a->width, a->scale, queries_of(a, &call->operand[Q], head, first),
          keys_of(a, &call->operand[K], head, 1), 0, p, seen);
    sgemm(rows, seen, a->width, 1, queries_of(a, &call->gradient[Y], head, first),
          keys_of(a, &call->operand[V], head, 1), 0, ds, seen);
    for (int64_t i = 0; i < rows; i++)
        row_gradients(p + i * seen, ds + i * seen, visible(a, first + i), seen, logsum[i],
                      dot(dy + i * stride, y + i * stride, a->width), a->scale);
}

static void backward_block(const struct attention *a, int64_t head, int64_t first, float *p,
                           float *ds)
{
    const struct kernel_call *call = a->call;
    int64_t rows = a->queries - first < a->block ? a->queries - first : a->block;
    int64_t seen = visible(a, first + rows - 1), stride = a->heads * a->width;
    block_scores(a, head, first, rows, seen, p, ds);
    if (call->gradient[K].data)
        sgemm(seen, a->width, rows, 1, (struct matrix){ds, seen, 1},
              queries_of(a, &call->operand[Q], head, first), 1,
              at(a, &call->gradient[K], a->keys, head, 0), stride);
    if (call->gradient[V].data)
        sgemm(seen, a->width, rows, 1, (struct matrix){p, seen, 1},
              queries_of(a, &call->gradient[Y], head, first), 1,
              at(a, &call->gradient[V], a->keys, head, 0), stride);
    /* Last: it may lie over the gradient of y. */
    if (call->gradient[Q].data)
        sgemm(rows, a->width, seen, 1, (struct matrix){ds, seen, 0},
              keys_of(a, &call->operand[K], head, 0), call_accumulates(call, Q) ? 1 : 0,
              at(a, &call->gradient[Q], a->queries, head, first), stride);
}

/* Blocks add to the gradients of k and v: they begin at 0. */
static void clear(const struct attention *a, int operand, int64_t head)
{
    const struct view *view = &a->call->gradient[operand];
    if (!view->data || call_accumulates(a->call, operand))
        return;
    for (int64_t j = 0; j < a->keys; j++)
        memset(at(a, view, a->keys, head, j), 0, (size_t)a->width * sizeof(float));
}

static void backward_group(const struct attention *a, int64_t group)
{
    int64_t heads = a->batch * a->heads, size = a->block * a->keys;
    float *p = a->workspace + 2 * group * size;
    for (int64_t head = heads * group / a->groups; head < heads * (group + 1) / a->groups; head++) {
        clear(a, K, head);
        clear(a, V, head);
        for (int64_t first = 0; first < a->queries; first += a->block)
            backward_block(a, head, first, p, p + size);
    }
}

static void backward_groups(const void *context, int64_t first, int64_t end)
{
    for (int64_t group = first; group < end; group++)
        backward_group(context, group);
}

static void backward(const struct kernel_call *call)
{
    struct attention a = attention_of(call);
    if (a.queries == 0)
        a.groups = a.batch * a.heads > 0; /* keys that nothing sees have gradients of 0 */
    parallel(a.groups, 1, backward_groups, &a);
}

const struct kernel cpu_core = {"core", {{forward}, {backward}}};
