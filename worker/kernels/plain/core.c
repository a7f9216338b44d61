/* core.c - attention, with one matrix of probabilities per sample and head: causal or over all
 * keys, as the operation says, with one or several query heads for each head of keys and values.
 *
 * P = softmax(q k' / sqrt(d)) over the keys that a query sees, and y = P v. Backward: dv = P' dy,
 * dS = P (dy v' - rowsum(dy y)), dq = dS k / sqrt(d), dk = dS' q / sqrt(d): FlashAttention, arXiv
 * 2205.14135, appendix B.2. */
#include "worker/kernels/plain/plain.h"

#include <math.h>

enum { Q, K, V, Y, LOGSUM };

/* Shapes of the pieces of q and y, and of k and v. The workspace holds (queries, keys) of one
 * head. */
struct shape {
    /* First: the key at the first query's position. */
    int64_t batch, queries, keys, heads, width, first;
    int64_t group; /* query heads that share a head of keys and values */
    bool causal;
    double scale;
};

static struct shape shape_of(const struct kernel_call *call)
{
    const struct box *q = &call->operand[Q].box, *k = &call->operand[K].box;
    int64_t width = box_length(q, q->dims - 1), group = q->dims > k->dims ? box_length(q, 3) : 1;
    return (struct shape){
        .batch = box_length(q, 0),
        .queries = box_length(q, 1),
        .keys = box_length(k, 1),
        .heads = box_length(q, 2) * group,
        .group = group,
        .width = width,
        .first = q->low[1] - k->low[1],
        .causal = call->node->operation->causal,
        .scale = 1 / sqrt((double)width),
    };
}

/* How many keys query i sees: all or, if causal, those up to its own position. */
static int64_t visible(const struct shape *s, int64_t i)
{
    if (!s->causal)
        return s->keys;
    int64_t count = s->first + i + 1;
    return count < 0 ? 0 : count < s->keys ? count : s->keys;
}

/* Index in q or y, (b, s, n, d), of the vector of head n at a position. */
static int64_t query(const struct shape *s, int64_t b, int64_t n, int64_t place)
{
    return ((b * s->queries + place) * s->heads + n) * s->width;
}

/* The same in k or v, for the head that head n's group shares. */
static int64_t key(const struct shape *s, int64_t b, int64_t n, int64_t place)
{
    return ((b * s->keys + place) * (s->heads / s->group) + n / s->group) * s->width;
}

/* Dot product of a vector of each. */
static double dot(const struct view *a, int64_t a_first, const struct view *b, int64_t b_first,
                  int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += get(a, a_first + i) * get(b, b_first + i);
    return sum;
}

static double score(const struct kernel_call *call, const struct shape *s, int64_t b, int64_t n,
                    int64_t i, int64_t j)
{
    return s->scale *
           dot(&call->operand[Q], query(s, b, n, i), &call->operand[K], key(s, b, n, j), s->width);
}

/* Probabilities of query i; returns the logarithm of its sum of exponentials (-inf: it sees no
 * key). */
static double softmax(const struct kernel_call *call, const struct shape *s, int64_t b, int64_t n,
                      int64_t i, float *p)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < visible(s, i); j++)
        largest = fmax(largest, score(call, s, b, n, i, j));
    for (int64_t j = 0; j < visible(s, i); j++)
        sum += exp(score(call, s, b, n, i, j) - largest);
    double logsum = visible(s, i) > 0 ? largest + log(sum) : -INFINITY;
    for (int64_t j = 0; j < visible(s, i); j++)
        p[j] = (float)exp(score(call, s, b, n, i, j) - logsum);
    return logsum;
}

static void forward(const struct kernel_call *call)
{
    struct shape s = shape_of(call);
    float *p = call->workspace, *logsum = call->operand[LOGSUM].data;
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t n = 0; n < s.heads; n++)
            for (int64_t i = 0; i < s.queries; i++) {
                logsum[(b * s.heads + n) * s.queries + i] = (float)softmax(call, &s, b, n, i, p);
                int64_t y = query(&s, b, n, i);
                for (int64_t d = 0; d < s.width; d++) {
                    double sum = 0;
                    for (int64_t j = 0; j < visible(&s, i); j++)
                        sum += (double)p[j] * get(&call->operand[V], key(&s, b, n, j) + d);
                    put(&call->operand[Y], y + d, false, sum);
                }
            }
}

/* P and dS of one head; zero where a query does not see a key. */
static void scores(const struct kernel_call *call, const struct shape *s, int64_t b, int64_t n,
                   float *p, float *ds)
{
    const float *logsum = (float *)call->operand[LOGSUM].data + (b * s->heads + n) * s->queries;
    for (int64_t i = 0; i < s->queries; i++) {
        const struct view *dy = &call->gradient[Y];
        int64_t row = query(s, b, n, i);
        double mean = dot(dy, row, &call->operand[Y], row, s->width);
        for (int64_t j = 0; j < s->keys; j++) {
            double probability =
                j < visible(s, i) ? exp(score(call, s, b, n, i, j) - logsum[i]) : 0;
            double dp = dot(dy, row, &call->operand[V], key(s, b, n, j), s->width);
            p[i * s->keys + j] = (float)probability;
            ds[i * s->keys + j] = (float)(probability * (dp - mean) * s->scale);
        }
    }
}

static void backward_query(const struct kernel_call *call, const struct shape *s, int64_t b,
                           int64_t n, const float *ds)
{
    for (int64_t i = 0; i < s->queries; i++)
        for (int64_t d = 0; d < s->width; d++) {
            double sum = 0;
            for (int64_t j = 0; j < s->keys; j++)
                sum += (double)ds[i * s->keys + j] * get(&call->operand[K], key(s, b, n, j) + d);
            put(&call->gradient[Q], query(s, b, n, i) + d, call_accumulates(call, Q), sum);
        }
}

/* Gradient of k (from dS and q) or v (from P and dy). In bf16 it is rounded after each head. */
static void backward_key(const struct kernel_call *call, const struct shape *s, int64_t b,
                         int64_t n, const float *matrix, const struct view *rows, int operand)
{
    for (int64_t j = 0; j < s->keys; j++)
        for (int64_t d = 0; d < s->width; d++) {
            double sum = 0;
            for (int64_t i = 0; i < s->queries; i++)
                sum += (double)matrix[i * s->keys + j] * get(rows, query(s, b, n, i) + d);
            /* Earlier heads of the group have added theirs already. */
            put(&call->gradient[operand], key(s, b, n, j) + d,
                call_accumulates(call, operand) || n % s->group > 0, sum);
        }
}

static void backward(const struct kernel_call *call)
{
    struct shape s = shape_of(call);
    float *p = call->workspace, *ds = p + s.queries * s.keys;
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t n = 0; n < s.heads; n++) {
            scores(call, &s, b, n, p, ds);
            if (call->gradient[K].data)
                backward_key(call, &s, b, n, ds, &call->operand[Q], K);
            if (call->gradient[V].data)
                backward_key(call, &s, b, n, p, &call->gradient[Y], V);
            /* Last, because it may share memory with the gradient of y. */
            if (call->gradient[Q].data)
                backward_query(call, &s, b, n, ds);
        }
}

const struct kernel plain_attention = {"attention", {{forward}, {backward}}};
