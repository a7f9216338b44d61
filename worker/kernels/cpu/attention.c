/* attention.c - attention, by matrix products on blocks of queries: the layout of heads, how
 * threads share them, forward and the gradients.
 *
 * A head of q, k or v is a matrix whose rows are heads x width numbers apart, and matrix products
 * read it in place. Queries are processed in blocks. A causal block sees the keys up to its last
 * query, so half of the work is skipped, apart from the blocks on the diagonal. Formulas:
 * plain/plain.c.
 *
 * Each team (one thread) takes whole heads of keys, with all query heads that share them. The
 * workspace of s_q x s_k scores is divided between teams, which limits the size of a block. */
#include "worker/kernels/call.h"
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/product.h"

#include <math.h>
#include <string.h>

#define ROUND_CHUNK 256  /* numbers that are rounded at a time */
#define QUERIES_LEAST 16 /* queries in the smallest block that is worth its products */

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

/* The first key head of a team. */
static int64_t attention_first_key(const struct attention *a, int64_t team)
{
    return a->batch * a->heads * team / a->teams;
}

static struct head attention_head(const struct attention *a, int64_t key, int64_t member)
{
    return (struct head){key * a->group + member, key};
}

/* How many keys query i sees: all or, if causal, those up to its own position. */
static int64_t attention_visible(const struct attention *a, int64_t i)
{
    int64_t count = a->causal ? a->first + i + 1 : a->keys;
    return count < 0 ? 0 : count < a->keys ? count : a->keys;
}

/* Head `head` of a tensor (b, s, heads, d), from position `place` of the sequence on. */
static struct matrix attention_matrix(const struct attention *a, const struct view *view,
                                      int64_t heads, int64_t head, int64_t place)
{
    int64_t seq = box_length(&view->box, 1);
    int64_t at = ((head / heads * seq + place) * heads + head % heads) * a->width;
    return (struct matrix){from_number(view->data, view->element, at), heads * a->width, false};
}

static struct matrix attention_queries(const struct attention *a, const struct view *view,
                                       int64_t head, int64_t place)
{
    return attention_matrix(a, view, a->heads * a->group, head, place);
}

static struct matrix attention_keys(const struct attention *a, const struct view *view,
                                    int64_t head, bool transposed)
{
    struct matrix matrix = attention_matrix(a, view, a->heads, head, 0);
    matrix.transposed = transposed;
    return matrix;
}

/* In bf16 the gradients of k and v, to which every block adds, are summed in f32. That takes 2 x
 * keys x width numbers behind the 2 x block x keys scores of a team's part of the workspace. If
 * there is no room for that with any number of teams, there is a single block, and nothing has to
 * be summed. */
static void attention_fit_sums(struct attention *a)
{
    int64_t teams = a->teams;
    while (teams > 1 && a->queries / teams - a->width < QUERIES_LEAST)
        teams--;
    int64_t block = a->queries / teams - a->width;
    a->sums = block >= QUERIES_LEAST;
    a->teams = a->sums ? teams : 1;
    a->block = !a->sums ? a->queries : block < ATTENTION_BLOCK ? block : ATTENTION_BLOCK;
}

/* What a call computes, and how it is divided between the threads of the caller. */
static struct attention attention_of(const struct kernel_call *call, enum direction direction)
{
    const struct box *q = &call->operand[Q].box, *k = &call->operand[K].box;
    int64_t width = box_length(q, q->dims - 1);
    struct attention a = {
        .call = call,
        .element = call->element,
        .batch = box_length(q, 0),
        .queries = box_length(q, 1),
        .keys = box_length(k, 1),
        .heads = box_length(k, 2),
        .group = q->dims > k->dims ? box_length(q, 3) : 1,
        .width = width,
        .first = q->low[1] - k->low[1],
        .causal = call->node->operation->causal,
        .scale = 1 / sqrtf((float)width),
    };
    int64_t threads = parallel_threads();
    a.teams = threads < a.queries ? threads : a.queries;
    if (a.teams > a.batch * a.heads)
        a.teams = a.batch * a.heads;
    if (a.teams == 0)
        return a;
    a.block = a.queries / a.teams < ATTENTION_BLOCK ? a.queries / a.teams : ATTENTION_BLOCK;
    if (direction == BACKWARD && a.element != ELEMENT_F32 && a.block < a.queries)
        attention_fit_sums(&a);
    return a;
}

/* Unscaled scores x y' of a block: out is (rows, seen) in f32; x has `rows` queries, y is already
 * read as its transpose. */
static void attention_scores(const struct attention *a, struct matrix x, struct matrix y,
                             int64_t rows, int64_t seen, float *out)
{
    product_run(&(struct product){
        .rows = rows,
        .columns = seen,
        .inner = a->width,
        .element = a->element,
        .a = x,
        .b = y,
        .c = out,
        .stride = seen,
        .result = ELEMENT_F32,
    });
}

/* Goes through a separate buffer, because the same memory must not be accessed as both types at
 * once. */
VECTORISED static void round_row(float *row, int64_t count, float by)
{
    for (int64_t first = 0; first < count; first += ROUND_CHUNK) {
        int64_t length = count - first < ROUND_CHUNK ? count - first : ROUND_CHUNK;
        uint16_t rounded[ROUND_CHUNK];
#pragma omp simd
        for (int64_t i = 0; i < length; i++)
            rounded[i] = bf16_narrow(row[first + i] * by);
        memcpy((char *)row + first * (int64_t)sizeof *rounded, rounded,
               (size_t)length * sizeof *rounded);
    }
}

/* Convert rows of f32 to the call's element in place, multiplying row i by by[i] unless `by` is
 * NULL. For f32 nothing is done. Returns the resulting matrix. */
static struct matrix attention_round(const struct attention *a, float *scores, int64_t rows,
                                     int64_t seen, const float *by)
{
    if (a->element == ELEMENT_F32)
        return (struct matrix){scores, seen, false};
    for (int64_t i = 0; i < rows; i++)
        round_row(scores + i * seen, seen, by ? by[i] : 1);
    return (struct matrix){scores, seen * 2, false};
}

/* Turn scores into exponentials relative to the largest. Returns the inverse of their sum, and in
 * *logsum its logarithm (-inf if the query sees nothing). Keys that the query does not see get
 * 0. */
VECTORISED static float attention_softmax(float *p, int64_t seen, int64_t count, float scale,
                                          float *logsum)
{
    float largest = -INFINITY, sum = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t j = 0; j < seen; j++)
        largest = p[j] > largest ? p[j] : largest;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < seen; j++) {
        p[j] = exponential((p[j] - largest) * scale);
        sum += p[j];
    }
    for (int64_t j = seen; j < count; j++)
        p[j] = 0;
    *logsum = seen > 0 ? largest * scale + logf(sum) : -INFINITY;
    return seen > 0 ? 1 / sum : 0;
}

VECTORISED static void scale_row(float *row, int64_t count, float by)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        row[i] *= by;
}

static void attention_forward_block(const struct attention *a, struct head head, int64_t first,
                                    float *scores)
{
    const struct view *operand = a->call->operand;
    int64_t rows = a->queries - first < a->block ? a->queries - first : a->block;
    int64_t seen = attention_visible(a, first + rows - 1);
    float *logsum = (float *)operand[LOGSUM].data + head.query * a->queries + first;
    struct matrix y = attention_queries(a, &operand[Y], head.query, first);
    float inverse[ATTENTION_BLOCK];
    attention_scores(a, attention_queries(a, &operand[Q], head.query, first),
                     attention_keys(a, &operand[K], head.key, true), rows, seen, scores);
    for (int64_t i = 0; i < rows; i++)
        inverse[i] = attention_softmax(scores + i * seen, attention_visible(a, first + i), seen,
                                       a->scale, &logsum[i]);
    product_run(&(struct product){
        .rows = rows,
        .columns = a->width,
        .inner = seen,
        .element = a->element,
        .a = attention_round(a, scores, rows, seen, inverse),
        .b = attention_keys(a, &operand[V], head.key, false),
        .c = (void *)y.data,
        .stride = y.stride,
        .result = a->element,
    });
    for (int64_t i = 0; a->element == ELEMENT_F32 && i < rows; i++)
        scale_row((float *)y.data + i * y.stride, a->width, inverse[i]);
}

static void attention_forward_team(const struct attention *a, int64_t team)
{
    float *scores = (float *)a->call->workspace + team * a->block * a->keys;
    int64_t end = attention_first_key(a, team + 1);
    for (int64_t key = attention_first_key(a, team); key < end; key++)
        for (int64_t member = 0; member < a->group; member++)
            for (int64_t first = 0; first < a->queries; first += a->block)
                attention_forward_block(a, attention_head(a, key, member), first, scores);
}

static void attention_forward_teams(const void *context, int64_t first, int64_t end)
{
    for (int64_t team = first; team < end; team++)
        attention_forward_team(context, team);
}

static void attention_forward(const struct kernel_call *call)
{
    struct attention a = attention_of(call, FORWARD);
    parallel(a.teams, 1, attention_forward_teams, &a);
}

/* A team's part of the workspace. */
struct attention_scratch {
    float *p, *ds;
    float *sums[Y]; /* for K and V, if they are summed separately: (keys, width) */
};

/* Compute row i of P from its scores, and of dS from its dP. */
VECTORISED static void attention_row_gradients(float *p, float *ds, int64_t seen, int64_t count,
                                               float logsum, float mean, float scale)
{
#pragma omp simd
    for (int64_t j = 0; j < seen; j++) {
        p[j] = exponential(p[j] * scale - logsum);
        ds[j] = p[j] * (ds[j] - mean) * scale;
    }
    for (int64_t j = seen; j < count; j++)
        p[j] = ds[j] = 0;
}

INLINED float dot_each(const void *a, const void *b, int64_t count, enum element element)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++)
        sum += load(a, element, i) * load(b, element, i);
    return sum;
}

/* Dot product of row `row` of two matrices with the same layout. */
VECTORISED static float attention_dot(const struct attention *a, struct matrix x, struct matrix y,
                                      int64_t row)
{
    const void *left = from_number(x.data, a->element, row * x.stride);
    const void *right = from_number(y.data, a->element, row * y.stride);
    return a->element == ELEMENT_F32 ? dot_each(left, right, a->width, ELEMENT_F32)
                                     : dot_each(left, right, a->width, ELEMENT_BF16);
}

/* Compute P and dS of a block, both (rows, seen). */
static void attention_block_scores(const struct attention *a, struct head head, int64_t first,
                                   int64_t rows, int64_t seen,
                                   const struct attention_scratch *scratch)
{
    const struct kernel_call *call = a->call;
    const float *logsum = (float *)call->operand[LOGSUM].data + head.query * a->queries + first;
    struct matrix y = attention_queries(a, &call->operand[Y], head.query, first);
    struct matrix dy = attention_queries(a, &call->gradient[Y], head.query, first);
    attention_scores(a, attention_queries(a, &call->operand[Q], head.query, first),
                     attention_keys(a, &call->operand[K], head.key, true), rows, seen, scratch->p);
    attention_scores(a, dy, attention_keys(a, &call->operand[V], head.key, true), rows, seen,
                     scratch->ds);
    for (int64_t i = 0; i < rows; i++)
        attention_row_gradients(scratch->p + i * seen, scratch->ds + i * seen,
                                attention_visible(a, first + i), seen, logsum[i],
                                attention_dot(a, dy, y, i), a->scale);
}

/* Add rows' x to the gradient of k or v: to the separate f32 sums, or in place. */
static void attention_add_keys(const struct attention *a, int operand, int64_t key,
                               struct matrix rows, struct matrix x, int64_t count, int64_t seen,
                               const struct attention_scratch *scratch)
{
    struct product product = {
        .rows = seen,
        .columns = a->width,
        .inner = count,
        .element = a->element,
        .a = {rows.data, rows.stride, true},
        .b = x,
        .add = true,
        .c = scratch->sums[operand],
        .stride = a->width,
        .result = ELEMENT_F32,
    };
    if (!a->sums) {
        struct matrix to = attention_keys(a, &a->call->gradient[operand], key, false);
        product.c = (void *)to.data;
        product.stride = to.stride;
        product.result = a->element;
    }
    product_run(&product);
}

static void attention_backward_block(const struct attention *a, struct head head, int64_t first,
                                     const struct attention_scratch *scratch)
{
    const struct kernel_call *call = a->call;
    int64_t rows = a->queries - first < a->block ? a->queries - first : a->block;
    int64_t seen = attention_visible(a, first + rows - 1);
    attention_block_scores(a, head, first, rows, seen, scratch);
    struct matrix p = attention_round(a, scratch->p, rows, seen, NULL);
    struct matrix ds = attention_round(a, scratch->ds, rows, seen, NULL);
    if (call->gradient[K].data)
        attention_add_keys(a, K, head.key, ds,
                           attention_queries(a, &call->operand[Q], head.query, first), rows, seen,
                           scratch);
    if (call->gradient[V].data)
        attention_add_keys(a, V, head.key, p,
                           attention_queries(a, &call->gradient[Y], head.query, first), rows, seen,
                           scratch);
    /* Last, because this gradient may share memory with the gradient of y. */
    if (call->gradient[Q].data) {
        struct matrix to = attention_queries(a, &call->gradient[Q], head.query, first);
        product_run(&(struct product){
            .rows = rows,
            .columns = a->width,
            .inner = seen,
            .element = a->element,
            .a = ds,
            .b = attention_keys(a, &call->operand[K], head.key, false),
            .add = call_accumulates(call, Q),
            .c = (void *)to.data,
            .stride = to.stride,
            .result = a->element,
        });
    }
}

/* Clear the gradient of k or v, unless it accumulates, because blocks add to it. */
static void attention_begin_keys(const struct attention *a, int operand, int64_t key,
                                 const struct attention_scratch *scratch)
{
    const struct view *view = &a->call->gradient[operand];
    if (!view->data)
        return;
    struct matrix to = attention_keys(a, view, key, false);
    size_t row = (size_t)a->width * element_size(view->element);
    if (a->sums)
        memset(scratch->sums[operand], 0, (size_t)(a->keys * a->width) * sizeof(float));
    else if (!call_accumulates(a->call, operand))
        for (int64_t j = 0; j < a->keys; j++)
            memset(from_number(to.data, view->element, j * to.stride), 0, row);
}

INLINED void attention_end_rows(const float *sums, struct matrix to, int64_t keys, int64_t width,
                                bool add)
{
    for (int64_t j = 0; j < keys; j++) {
        const float *sum = sums + j * width;
        uint16_t *row = (uint16_t *)to.data + j * to.stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            row[i] = bf16_narrow(sum[i] + (add ? bf16_widen(row[i]) : 0));
    }
}

/* Round the f32 sums once, into the gradient. */
VECTORISED static void attention_end_keys(const struct attention *a, int operand, int64_t key,
                                          const struct attention_scratch *scratch)
{
    const struct view *view = &a->call->gradient[operand];
    if (a->sums && view->data)
        attention_end_rows(scratch->sums[operand], attention_keys(a, view, key, false), a->keys,
                           a->width, call_accumulates(a->call, operand));
}

static void attention_backward_team(const struct attention *a, int64_t team)
{
    int64_t size = a->block * a->keys, sums = a->sums ? a->keys * a->width : 0;
    float *begin = (float *)a->call->workspace + 2 * team * (size + sums);
    struct attention_scratch scratch = {.p = begin, .ds = begin + size};
    scratch.sums[K] = begin + 2 * size;
    scratch.sums[V] = begin + 2 * size + sums;
    int64_t end = attention_first_key(a, team + 1);
    for (int64_t key = attention_first_key(a, team); key < end; key++) {
        attention_begin_keys(a, K, key, &scratch);
        attention_begin_keys(a, V, key, &scratch);
        for (int64_t member = 0; member < a->group; member++)
            for (int64_t first = 0; first < a->queries; first += a->block)
                attention_backward_block(a, attention_head(a, key, member), first, &scratch);
        attention_end_keys(a, K, key, &scratch);
        attention_end_keys(a, V, key, &scratch);
    }
}

static void attention_backward_teams(const void *context, int64_t first, int64_t end)
{
    for (int64_t team = first; team < end; team++)
        attention_backward_team(context, team);
}

static void attention_backward(const struct kernel_call *call)
{
    struct attention a = attention_of(call, BACKWARD);
    if (a.teams == 0) /* keys that nothing sees have gradients of 0 */
        a.teams = a.batch * a.heads > 0;
    parallel(a.teams, 1, attention_backward_teams, &a);
}

const struct kernel cpu_attention = {"attention", {{attention_forward}, {attention_backward}}};
