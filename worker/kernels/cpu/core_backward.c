/* core_backward.c - the gradients of attention, block of queries by block; see attention.h. */
#include "worker/kernels/cpu/attention.h"
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/exponential.h"

#include <string.h>

/* A team's part of the workspace. */
struct room {
    float *p, *ds;
    float *sums[Y]; /* for K and V, if they are summed separately: (keys, width) */
};

/* Compute row i of P from its scores, and of dS from its dP. */
VECTORISED static void row_gradients(float *p, float *ds, int64_t seen, int64_t count, float logsum,
                                     float mean, float scale)
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
VECTORISED static float dot(const struct attention *a, struct matrix x, struct matrix y,
                            int64_t row)
{
    const void *left = from_number(x.data, a->element, row * x.stride);
    const void *right = from_number(y.data, a->element, row * y.stride);
    return a->element == ELEMENT_F32 ? dot_each(left, right, a->width, ELEMENT_F32)
                                     : dot_each(left, right, a->width, ELEMENT_BF16);
}

/* Compute P and dS of a block, both (rows, seen). */
static void block_scores(const struct attention *a, struct head head, int64_t first, int64_t rows,
                         int64_t seen, const struct room *room)
{
    const struct kernel_call *call = a->call;
    const float *logsum = (float *)call->operand[LOGSUM].data + head.query * a->queries + first;
    struct matrix y = attention_queries(a, &call->operand[Y], head.query, first);
    struct matrix dy = attention_queries(a, &call->gradient[Y], head.query, first);
    attention_scores(a, attention_queries(a, &call->operand[Q], head.query, first),
                     attention_keys(a, &call->operand[K], head.key, true), rows, seen, room->p);
    attention_scores(a, dy, attention_keys(a, &call->operand[V], head.key, true), rows, seen,
                     room->ds);
    for (int64_t i = 0; i < rows; i++)
        row_gradients(room->p + i * seen, room->ds + i * seen, attention_visible(a, first + i),
                      seen, logsum[i], dot(a, dy, y, i), a->scale);
}

/* Add rows' x to the gradient of k or v: to the separate f32 sums, or in place. */
static void add_keys(const struct attention *a, int operand, int64_t key, struct matrix rows,
                     struct matrix x, int64_t count, int64_t seen, const struct room *room)
{
    struct product product = {
        .rows = seen,
        .columns = a->width,
        .inner = count,
        .element = a->element,
        .a = {rows.data, rows.stride, true},
        .b = x,
        .add = true,
        .c = room->sums[operand],
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

static void backward_block(const struct attention *a, struct head head, int64_t first,
                           const struct room *room)
{
    const struct kernel_call *call = a->call;
    int64_t rows = a->queries - first < a->block ? a->queries - first : a->block;
    int64_t seen = attention_visible(a, first + rows - 1);
    block_scores(a, head, first, rows, seen, room);
    struct matrix p = attention_round(a, room->p, rows, seen, NULL);
    struct matrix ds = attention_round(a, room->ds, rows, seen, NULL);
    if (call->gradient[K].data)
        add_keys(a, K, head.key, ds, attention_queries(a, &call->operand[Q], head.query, first),
                 rows, seen, room);
    if (call->gradient[V].data)
        add_keys(a, V, head.key, p, attention_queries(a, &call->gradient[Y], head.query, first),
                 rows, seen, room);
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
static void begin_keys(const struct attention *a, int operand, int64_t key, const struct room *room)
{
    const struct view *view = &a->call->gradient[operand];
    if (!view->data)
        return;
    struct matrix to = attention_keys(a, view, key, false);
    size_t row = (size_t)a->width * element_size(view->element);
    if (a->sums)
        memset(room->sums[operand], 0, (size_t)(a->keys * a->width) * sizeof(float));
    else if (!call_accumulates(a->call, operand))
        for (int64_t j = 0; j < a->keys; j++)
            memset(from_number(to.data, view->element, j * to.stride), 0, row);
}

INLINED void end_rows(const float *sums, struct matrix to, int64_t keys, int64_t width, bool add)
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
VECTORISED static void end_keys(const struct attention *a, int operand, int64_t key,
                                const struct room *room)
{
    const struct view *view = &a->call->gradient[operand];
    if (a->sums && view->data)
        end_rows(room->sums[operand], attention_keys(a, view, key, false), a->keys, a->width,
                 call_accumulates(a->call, operand));
}

static void backward_team(const struct attention *a, int64_t team)
{
    int64_t size = a->block * a->keys, sums = a->sums ? a->keys * a->width : 0;
    float *begin = (float *)a->call->workspace + 2 * team * (size + sums);
    struct room room = {.p = begin, .ds = begin + size};
    room.sums[K] = begin + 2 * size;
    room.sums[V] = begin + 2 * size + sums;
    int64_t end = attention_first_key(a, team + 1);
    for (int64_t key = attention_first_key(a, team); key < end; key++) {
        begin_keys(a, K, key, &room);
        begin_keys(a, V, key, &room);
        for (int64_t member = 0; member < a->group; member++)
            for (int64_t first = 0; first < a->queries; first += a->block)
                backward_block(a, attention_head(a, key, member), first, &room);
        end_keys(a, K, key, &room);
        end_keys(a, V, key, &room);
    }
}

static void backward_teams(const void *context, int64_t first, int64_t end)
{
    for (int64_t team = first; team < end; team++)
        backward_team(context, team);
}

void cpu_core_backward(const struct kernel_call *call)
{
    struct attention a = attention_of(call, BACKWARD);
    if (a.teams == 0) /* keys that nothing sees have gradients of 0 */
        a.teams = a.batch * a.heads > 0;
    parallel(a.teams, 1, backward_teams, &a);
}
