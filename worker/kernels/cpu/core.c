/* core.c - attention forward, by matrix products on blocks of queries; see attention.h. */
#include "worker/kernels/cpu/attention.h"
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/exponential.h"

#include <math.h>
#include <string.h>

#define CHUNK 256 /* numbers that are rounded at a time */
#define LEAST 16  /* queries in the smallest block that is worth its products */

/* In bf16 the gradients of k and v, to which every block adds, are summed in f32. That takes 2 x
 * keys x width numbers behind the 2 x block x keys scores of a team's part of the workspace. If
 * there is no room for that with any number of teams, there is a single block, and nothing has to
 * be summed. */
static void make_room_for_sums(struct attention *a)
{
    int64_t teams = a->teams;
    while (teams > 1 && a->queries / teams - a->width < LEAST)
        teams--;
    int64_t block = a->queries / teams - a->width;
    a->sums = block >= LEAST;
    a->teams = a->sums ? teams : 1;
    a->block = !a->sums ? a->queries : block < ATTENTION_BLOCK ? block : ATTENTION_BLOCK;
}

struct attention attention_of(const struct kernel_call *call, enum direction direction)
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
        make_room_for_sums(&a);
    return a;
}

void attention_scores(const struct attention *a, struct matrix x, struct matrix y, int64_t rows,
                      int64_t seen, float *out)
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
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t length = count - first < CHUNK ? count - first : CHUNK;
        uint16_t rounded[CHUNK];
#pragma omp simd
        for (int64_t i = 0; i < length; i++)
            rounded[i] = bf16_narrow(row[first + i] * by);
        memcpy((char *)row + first * (int64_t)sizeof *rounded, rounded,
               (size_t)length * sizeof *rounded);
    }
}

struct matrix attention_round(const struct attention *a, float *scores, int64_t rows, int64_t seen,
                              const float *by)
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
VECTORISED static float softmax(float *p, int64_t seen, int64_t count, float scale, float *logsum)
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

static void forward_block(const struct attention *a, struct head head, int64_t first, float *scores)
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
        inverse[i] =
            softmax(scores + i * seen, attention_visible(a, first + i), seen, a->scale, &logsum[i]);
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

static void forward_team(const struct attention *a, int64_t team)
{
    float *scores = (float *)a->call->workspace + team * a->block * a->keys;
    int64_t end = attention_first_key(a, team + 1);
    for (int64_t key = attention_first_key(a, team); key < end; key++)
        for (int64_t member = 0; member < a->group; member++)
            for (int64_t first = 0; first < a->queries; first += a->block)
                forward_block(a, attention_head(a, key, member), first, scores);
}

static void forward_teams(const void *context, int64_t first, int64_t end)
{
    for (int64_t team = first; team < end; team++)
        forward_team(context, team);
}

static void forward(const struct kernel_call *call)
{
    struct attention a = attention_of(call, FORWARD);
    parallel(a.teams, 1, forward_teams, &a);
}

const struct kernel cpu_attention = {"attention", {{forward}, {cpu_core_backward}}};
