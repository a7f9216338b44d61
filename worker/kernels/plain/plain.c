/* plain.c - every operation in its plainest form, on one page: the yardstick.
 *
 * They define what an operation means: element by element, summed in double. Every machine has this
 * device; fast ones are tested against it. A new operation is a pair of functions and a row of the
 * table at the end. */
#include "worker/kernels/plain/plain.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* add: y = x + z. In backward, both gradients equal the gradient of y. */

static void add_forward(const struct kernel_call *call)
{
    const struct view *x = &call->operand[0], *z = &call->operand[1], *y = &call->operand[2];
    for (int64_t i = 0; i < box_count(&y->box); i++)
        put(y, i, false, get(x, i) + get(z, i));
}

static void add_backward(const struct kernel_call *call)
{
    call_pass(call, 0);
    call_pass(call, 1);
}

static const struct kernel plain_add = {"add", {{add_forward}, {add_backward}}};

/* attention, with one matrix of probabilities per sample and head: causal or over all keys, as the
 * operation says, with one or several query heads for each head of keys and values.
 *
 * P = softmax(q k' / sqrt(d)) over the keys that a query sees, and y = P v. Backward: dv = P' dy,
 * dS = P (dy v' - rowsum(dy y)), dq = dS k / sqrt(d), dk = dS' q / sqrt(d): FlashAttention, arXiv
 * 2205.14135, appendix B.2. */

enum { Q, K, V, Y, LOGSUM };

/* Shapes of the pieces of q and y, and of k and v. The workspace holds (queries, keys) of one
 * head. */
struct attention {
    /* First: the key at the first query's position. */
    int64_t batch, queries, keys, heads, width, first;
    int64_t group; /* query heads that share a head of keys and values */
    bool causal;
    double scale;
};

static struct attention attention_of(const struct kernel_call *call)
{
    const struct box *q = &call->operand[Q].box, *k = &call->operand[K].box;
    int64_t width = box_length(q, q->dims - 1), group = q->dims > k->dims ? box_length(q, 3) : 1;
    return (struct attention){
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
static int64_t attention_visible(const struct attention *s, int64_t i)
{
    if (!s->causal)
        return s->keys;
    int64_t count = s->first + i + 1;
    return count < 0 ? 0 : count < s->keys ? count : s->keys;
}

/* Index in q or y, (b, s, n, d), of the vector of head n at a position. */
static int64_t query_at(const struct attention *s, int64_t b, int64_t n, int64_t place)
{
    return ((b * s->queries + place) * s->heads + n) * s->width;
}

/* The same in k or v, for the head that head n's group shares. */
static int64_t key_at(const struct attention *s, int64_t b, int64_t n, int64_t place)
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

static double attention_score(const struct kernel_call *call, const struct attention *s, int64_t b,
                              int64_t n, int64_t i, int64_t j)
{
    return s->scale * dot(&call->operand[Q], query_at(s, b, n, i), &call->operand[K],
                          key_at(s, b, n, j), s->width);
}

/* Probabilities of query i; returns the logarithm of its sum of exponentials (-inf: it sees no
 * key). */
static double attention_softmax(const struct kernel_call *call, const struct attention *s,
                                int64_t b, int64_t n, int64_t i, float *p)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < attention_visible(s, i); j++)
        largest = fmax(largest, attention_score(call, s, b, n, i, j));
    for (int64_t j = 0; j < attention_visible(s, i); j++)
        sum += exp(attention_score(call, s, b, n, i, j) - largest);
    double logsum = attention_visible(s, i) > 0 ? largest + log(sum) : -INFINITY;
    for (int64_t j = 0; j < attention_visible(s, i); j++)
        p[j] = (float)exp(attention_score(call, s, b, n, i, j) - logsum);
    return logsum;
}

static void attention_forward(const struct kernel_call *call)
{
    struct attention s = attention_of(call);
    float *p = call->workspace, *logsum = call->operand[LOGSUM].data;
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t n = 0; n < s.heads; n++)
            for (int64_t i = 0; i < s.queries; i++) {
                logsum[(b * s.heads + n) * s.queries + i] =
                    (float)attention_softmax(call, &s, b, n, i, p);
                int64_t y = query_at(&s, b, n, i);
                for (int64_t d = 0; d < s.width; d++) {
                    double sum = 0;
                    for (int64_t j = 0; j < attention_visible(&s, i); j++)
                        sum += (double)p[j] * get(&call->operand[V], key_at(&s, b, n, j) + d);
                    put(&call->operand[Y], y + d, false, sum);
                }
            }
}

/* P and dS of one head; zero where a query does not see a key. */
static void attention_scores(const struct kernel_call *call, const struct attention *s, int64_t b,
                             int64_t n, float *p, float *ds)
{
    const float *logsum = (float *)call->operand[LOGSUM].data + (b * s->heads + n) * s->queries;
    for (int64_t i = 0; i < s->queries; i++) {
        const struct view *dy = &call->gradient[Y];
        int64_t row = query_at(s, b, n, i);
        double mean = dot(dy, row, &call->operand[Y], row, s->width);
        for (int64_t j = 0; j < s->keys; j++) {
            double probability = j < attention_visible(s, i)
                                     ? exp(attention_score(call, s, b, n, i, j) - logsum[i])
                                     : 0;
            double dp = dot(dy, row, &call->operand[V], key_at(s, b, n, j), s->width);
            p[i * s->keys + j] = (float)probability;
            ds[i * s->keys + j] = (float)(probability * (dp - mean) * s->scale);
        }
    }
}

static void attention_backward_query(const struct kernel_call *call, const struct attention *s,
                                     int64_t b, int64_t n, const float *ds)
{
    for (int64_t i = 0; i < s->queries; i++)
        for (int64_t d = 0; d < s->width; d++) {
            double sum = 0;
            for (int64_t j = 0; j < s->keys; j++)
                sum += (double)ds[i * s->keys + j] * get(&call->operand[K], key_at(s, b, n, j) + d);
            put(&call->gradient[Q], query_at(s, b, n, i) + d, call_accumulates(call, Q), sum);
        }
}

/* Gradient of k (from dS and q) or v (from P and dy). In bf16 it is rounded after each head. */
static void attention_backward_key(const struct kernel_call *call, const struct attention *s,
                                   int64_t b, int64_t n, const float *matrix,
                                   const struct view *rows, int operand)
{
    for (int64_t j = 0; j < s->keys; j++)
        for (int64_t d = 0; d < s->width; d++) {
            double sum = 0;
            for (int64_t i = 0; i < s->queries; i++)
                sum += (double)matrix[i * s->keys + j] * get(rows, query_at(s, b, n, i) + d);
            /* Earlier heads of the group have added theirs already. */
            put(&call->gradient[operand], key_at(s, b, n, j) + d,
                call_accumulates(call, operand) || n % s->group > 0, sum);
        }
}

static void attention_backward(const struct kernel_call *call)
{
    struct attention s = attention_of(call);
    float *p = call->workspace, *ds = p + s.queries * s.keys;
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t n = 0; n < s.heads; n++) {
            attention_scores(call, &s, b, n, p, ds);
            if (call->gradient[K].data)
                attention_backward_key(call, &s, b, n, ds, &call->operand[Q], K);
            if (call->gradient[V].data)
                attention_backward_key(call, &s, b, n, p, &call->gradient[Y], V);
            /* Last, because it may share memory with the gradient of y. */
            if (call->gradient[Q].data)
                attention_backward_query(call, &s, b, n, ds);
        }
}

static const struct kernel plain_attention = {"attention",
                                              {{attention_forward}, {attention_backward}}};

/* embed: y[row] = w[token[row]]. Tokens of another rank's part of the vocabulary give zeros, and
 * their gradients are ignored. */

/* The row of this piece of the table that belongs to a token; -1: it is elsewhere. */
static int64_t embed_table_row(const struct box *table, int32_t token)
{
    return token >= table->low[0] && token < table->high[0] ? token - table->low[0] : -1;
}

static void embed_forward(const struct kernel_call *call)
{
    const int32_t *tokens = call->operand[0].data;
    const struct view *w = &call->operand[1], *y = &call->operand[2];
    int64_t rows = call_rows(&call->operand[2].box), hidden = box_length(&call->operand[1].box, 1);
    for (int64_t row = 0; row < rows; row++) {
        int64_t from = embed_table_row(&call->operand[1].box, tokens[row]);
        for (int64_t i = 0; i < hidden; i++)
            put(y, row * hidden + i, false, from < 0 ? 0 : get(w, from * hidden + i));
    }
}

static bool embed_seen_before(const int32_t *tokens, int64_t row)
{
    for (int64_t i = 0; i < row; i++)
        if (tokens[i] == tokens[row])
            return true;
    return false;
}

static void embed_backward(const struct kernel_call *call)
{
    const int32_t *tokens = call->operand[0].data;
    const struct view *dy = &call->gradient[2], *dw = &call->gradient[1];
    if (!dw->data)
        return;
    int64_t rows = call_rows(&dy->box), hidden = box_length(&dw->box, 1);
    for (int64_t row = 0; row < rows; row++) {
        int64_t to = embed_table_row(&dw->box, tokens[row]);
        if (to < 0 || embed_seen_before(tokens, row))
            continue;
        for (int64_t i = 0; i < hidden; i++) {
            double sum = 0;
            for (int64_t other = row; other < rows; other++)
                sum += tokens[other] == tokens[row] ? get(dy, other * hidden + i) : 0;
            put(dw, to * hidden + i, true, sum);
        }
    }
}

static const struct kernel plain_embed = {"embed", {{embed_forward}, {embed_backward}}};

/* gelu: y = x/2 (1 + t), t = tanh(k (x + c x^3)): Hendrycks and Gimpel, arXiv 1606.08415. */

static const double gelu_k = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double gelu_c = 0.044715;

static void gelu_forward(const struct kernel_call *call)
{
    const struct view *x = &call->operand[0], *y = &call->operand[1];
    for (int64_t i = 0; i < box_count(&y->box); i++) {
        double u = get(x, i);
        put(y, i, false, u / 2 * (1 + tanh(gelu_k * (u + gelu_c * u * u * u))));
    }
}

static void gelu_backward(const struct kernel_call *call)
{
    const struct view *x = &call->operand[0], *dy = &call->gradient[1], *dx = &call->gradient[0];
    if (!dx->data)
        return;
    for (int64_t i = 0; i < box_count(&dy->box); i++) {
        double u = get(x, i), t = tanh(gelu_k * (u + gelu_c * u * u * u));
        double slope = (1 + t) / 2 + u / 2 * (1 - t * t) * gelu_k * (1 + 3 * gelu_c * u * u);
        put(dx, i, call_accumulates(call, 0), get(dy, i) * slope);
    }
}

static const struct kernel plain_gelu = {"gelu", {{gelu_forward}, {gelu_backward}}};

/* linear: y = x w + bias, for every operation that is a matrix product. */

static int64_t linear_weight_index(const struct matmul *m, int64_t inner, int64_t column)
{
    return m->transposed ? column * m->inner + inner : inner * m->columns + column;
}

/* There is a bias if the operation has two weights. If several ranks hold parts of the sum y, only
 * one of them adds it. */
static void linear_forward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    bool biased = operation->weight_count > 1 && call->once;
    const struct view *x = &call->operand[0], *w = &call->operand[1];
    const struct view *bias = &call->operand[2], *y = &call->operand[operation_output(operation)];
    for (int64_t row = 0; row < m.rows; row++)
        for (int64_t column = 0; column < m.columns; column++) {
            double sum = biased ? get(bias, column) : 0;
            for (int64_t i = 0; i < m.inner; i++)
                sum += get(x, row * m.inner + i) * get(w, linear_weight_index(&m, i, column));
            put(y, row * m.columns + column, false, sum);
        }
}

/* dx = dy w' */
static void linear_backward_input(const struct kernel_call *call, const struct matmul *m,
                                  const struct view *dy)
{
    const struct view *w = &call->operand[1], *dx = &call->gradient[0];
    for (int64_t row = 0; row < m->rows; row++)
        for (int64_t i = 0; i < m->inner; i++) {
            double sum = 0;
            for (int64_t column = 0; column < m->columns; column++)
                sum +=
                    get(dy, row * m->columns + column) * get(w, linear_weight_index(m, i, column));
            put(dx, row * m->inner + i, call_accumulates(call, 0), sum);
        }
}

/* dw += x' dy */
static void linear_backward_weight(const struct kernel_call *call, const struct matmul *m,
                                   const struct view *dy)
{
    const struct view *x = &call->operand[0], *dw = &call->gradient[1];
    for (int64_t i = 0; i < m->inner; i++)
        for (int64_t column = 0; column < m->columns; column++) {
            double sum = 0;
            for (int64_t row = 0; row < m->rows; row++)
                sum += get(x, row * m->inner + i) * get(dy, row * m->columns + column);
            put(dw, linear_weight_index(m, i, column), true, sum);
        }
}

static void linear_backward(const struct kernel_call *call)
{
    const struct operation *operation = call->node->operation;
    struct matmul m = call_matmul(call);
    const struct view *dy = &call->gradient[operation_output(operation)];
    if (call->gradient[0].data)
        linear_backward_input(call, &m, dy);
    if (call->gradient[1].data)
        linear_backward_weight(call, &m, dy);
    const struct view *dbias = &call->gradient[2];
    bool biased = operation->weight_count > 1 && dbias->data;
    for (int64_t column = 0; biased && column < m.columns; column++) {
        double sum = 0;
        for (int64_t row = 0; row < m.rows; row++)
            sum += get(dy, row * m.columns + column);
        put(dbias, column, true, sum);
    }
}

static const struct kernel plain_linear = {"linear", {{linear_forward}, {linear_backward}}};

/* loss: cross entropy: the sum over rows of log(sum exp(x)) - x[target], divided by the number of
 * targets.
 *
 * If a row's target is not in this rank's piece of the vocabulary, its logit counts as 0 here, so
 * that the sum over all pieces is right. */

enum { LOGITS, TARGETS, LOSS, LARGEST, EXPONENTIALS, TARGET };

static void loss_forward_largest(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[LOGITS].box);
    int64_t vocab = call_width(&call->operand[LOGITS].box);
    const struct view *x = &call->operand[LOGITS];
    float *largest = call->operand[LARGEST].data;
    for (int64_t row = 0; row < rows; row++) {
        largest[row] = -INFINITY;
        for (int64_t i = 0; i < vocab; i++)
            largest[row] = fmaxf(largest[row], (float)get(x, row * vocab + i));
    }
}

/* The target's column in this piece; -1: it is elsewhere, or ignored. */
static int64_t loss_target_column(const struct kernel_call *call, int64_t row)
{
    const struct box *box = &call->operand[LOGITS].box;
    int32_t target = ((const int32_t *)call->operand[TARGETS].data)[row];
    int64_t first = box->low[box->dims - 1];
    return target >= first && target < first + call_width(box) ? target - first : -1;
}

static void loss_forward_sums(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[LOGITS].box);
    int64_t vocab = call_width(&call->operand[LOGITS].box);
    const struct view *x = &call->operand[LOGITS];
    const float *largest = call->operand[LARGEST].data;
    float *exponentials = call->operand[EXPONENTIALS].data, *target = call->operand[TARGET].data;
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < vocab; i++)
            sum += exp(get(x, row * vocab + i) - largest[row]);
        exponentials[row] = (float)sum;
        int64_t column = loss_target_column(call, row);
        target[row] = column < 0 ? 0 : (float)(get(x, row * vocab + column) - largest[row]);
    }
}

static void loss_forward(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[LOGITS].box);
    const int32_t *targets = call->operand[TARGETS].data;
    const float *exponentials = call->operand[EXPONENTIALS].data;
    const float *target = call->operand[TARGET].data;
    double sum = 0;
    for (int64_t row = 0; row < rows; row++)
        if (targets[row] >= 0)
            sum += log((double)exponentials[row]) - (double)target[row];
    if (rows > 0)
        put(&call->operand[LOSS], 0, true, sum / call->targets);
}

static void loss_backward(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[LOGITS].box);
    int64_t vocab = call_width(&call->operand[LOGITS].box);
    const struct view *x = &call->operand[LOGITS], *dx = &call->gradient[LOGITS];
    const float *largest = call->operand[LARGEST].data;
    const float *exponentials = call->operand[EXPONENTIALS].data;
    const int32_t *targets = call->operand[TARGETS].data;
    for (int64_t row = 0; dx->data && row < rows; row++) {
        int64_t column = loss_target_column(call, row);
        for (int64_t i = 0; i < vocab; i++) {
            double p = exp(get(x, row * vocab + i) - largest[row]) / exponentials[row];
            put(dx, row * vocab + i, call_accumulates(call, LOGITS),
                targets[row] < 0 ? 0 : (p - (i == column)) / call->targets);
        }
    }
}

static const struct kernel plain_loss = {
    "loss",
    {{loss_forward_largest, loss_forward_sums, loss_forward}, {loss_backward}},
};

/* norm: layer normalisation: y = u w + b, u = (x - mean) / deviation.
 *
 * Ba, Kiros and Hinton, arXiv 1607.06450. Root-mean-square normalisation is the same without b and
 * with a mean of 0: Zhang and Sennrich, arXiv 1910.07467. Statistics are sums over this rank's
 * piece of x's last dim; between two phases they become sums over all of it. */

enum { NORM_X, NORM_W, NORM_B };

struct norm {
    int64_t rows, hidden;  /* hidden: width of the piece that is here */
    double width, epsilon; /* width: of the whole row */
    const struct view *x, *w, *b, *y, *dx, *dw, *db, *dy;
    float *sums, *squares, *dots_w, *dots_u;
    bool centred, add; /* add: to dx */
};

/* A norm without b (rmsnorm) has no mean, and so neither sums nor dots_w. */
static struct norm norm_of(const struct kernel_call *call)
{
    bool centred = call->node->operation->weight_count == 2;
    int y = operation_output(call->node->operation);
    int first = y + 1, last = centred ? first + 1 : first; /* indices of the statistics */
    return (struct norm){
        .rows = call_rows(&call->operand[NORM_X].box),
        .hidden = call_width(&call->operand[NORM_X].box),
        .width = (double)call_whole_width(call, NORM_X),
        .epsilon = call->node->epsilon,
        .x = &call->operand[NORM_X],
        .w = &call->operand[NORM_W],
        .b = centred ? &call->operand[NORM_B] : NULL,
        .y = &call->operand[y],
        .dx = &call->gradient[NORM_X],
        .dw = &call->gradient[NORM_W],
        .db = centred ? &call->gradient[NORM_B] : NULL,
        .dy = &call->gradient[y],
        .sums = centred ? call->operand[first].data : NULL,
        .squares = call->operand[last].data,
        .dots_w = centred ? call->gradient[first].data : NULL,
        .dots_u = call->gradient[last].data,
        .centred = centred,
        .add = call_accumulates(call, NORM_X),
    };
}

/* Valid once the sum is complete. */
static double norm_row_mean(const struct norm *norm, int64_t row)
{
    return norm->centred ? norm->sums[row] / norm->width : 0;
}

/* Valid once the squares are complete: u = (x - mean) * scale. */
static double norm_row_scale(const struct norm *norm, int64_t row)
{
    return 1 / sqrt(norm->squares[row] / norm->width + norm->epsilon);
}

static void norm_forward_sum(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    assert(norm.centred);
    for (int64_t row = 0; row < norm.rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < norm.hidden; i++)
            sum += get(norm.x, row * norm.hidden + i);
        norm.sums[row] = (float)sum;
    }
}

static void norm_forward_squares(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    for (int64_t row = 0; row < norm.rows; row++) {
        double mean = norm_row_mean(&norm, row), sum = 0;
        for (int64_t i = 0; i < norm.hidden; i++) {
            double deviation = get(norm.x, row * norm.hidden + i) - mean;
            sum += deviation * deviation;
        }
        norm.squares[row] = (float)sum;
    }
}

static void norm_forward_output(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    for (int64_t row = 0; row < norm.rows; row++) {
        double mean = norm_row_mean(&norm, row), scale = norm_row_scale(&norm, row);
        for (int64_t i = 0; i < norm.hidden; i++) {
            int64_t at = row * norm.hidden + i;
            double bias = norm.centred ? get(norm.b, i) : 0;
            put(norm.y, at, false, (get(norm.x, at) - mean) * scale * get(norm.w, i) + bias);
        }
    }
}

static void norm_backward_dots(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    for (int64_t row = 0; row < norm.rows; row++) {
        double mean = norm_row_mean(&norm, row), scale = norm_row_scale(&norm, row), sum = 0,
               sum_u = 0;
        for (int64_t i = 0; i < norm.hidden; i++) {
            int64_t at = row * norm.hidden + i;
            double du = get(norm.dy, at) * get(norm.w, i);
            sum += du;
            sum_u += du * (get(norm.x, at) - mean) * scale;
        }
        if (norm.centred)
            norm.dots_w[row] = (float)sum;
        norm.dots_u[row] = (float)sum_u;
    }
}

/* dx = (dy w - (dot_w + u dot_u) / width) / deviation. Without a mean there is no dot_w. */
static void norm_backward_input(const struct norm *norm)
{
    for (int64_t row = 0; row < norm->rows; row++) {
        double mean = norm_row_mean(norm, row), scale = norm_row_scale(norm, row);
        double dot_w = norm->centred ? norm->dots_w[row] : 0, dot_u = norm->dots_u[row];
        for (int64_t i = 0; i < norm->hidden; i++) {
            int64_t at = row * norm->hidden + i;
            double u = (get(norm->x, at) - mean) * scale;
            double du = get(norm->dy, at) * get(norm->w, i);
            put(norm->dx, at, norm->add, (du - (dot_w + u * dot_u) / norm->width) * scale);
        }
    }
}

/* dw = sum of dy u, db = sum of dy */
static void norm_backward_weights(const struct norm *norm)
{
    for (int64_t i = 0; i < norm->hidden; i++) {
        double sum = 0, sum_u = 0;
        for (int64_t row = 0; row < norm->rows; row++) {
            int64_t at = row * norm->hidden + i;
            double given = get(norm->dy, at);
            sum += given;
            sum_u +=
                given * (get(norm->x, at) - norm_row_mean(norm, row)) * norm_row_scale(norm, row);
        }
        if (norm->dw->data)
            put(norm->dw, i, true, sum_u);
        if (norm->centred && norm->db->data)
            put(norm->db, i, true, sum);
    }
}

static void norm_backward_gradients(const struct kernel_call *call)
{
    struct norm norm = norm_of(call);
    /* Weights first, because the gradient of x may share memory with that of y. */
    norm_backward_weights(&norm);
    if (norm.dx->data)
        norm_backward_input(&norm);
}

static const struct kernel plain_norm = {
    "norm",
    {{norm_forward_sum, norm_forward_squares, norm_forward_output},
     {norm_backward_dots, norm_backward_gradients}},
};

static const struct kernel plain_rmsnorm = {
    "rmsnorm",
    {{norm_forward_squares, norm_forward_output}, {norm_backward_dots, norm_backward_gradients}},
};

/* position: y[b,s] = x[b,s] + w[s]. The table may hold more positions than the piece of y. */

static void position_forward(const struct kernel_call *call)
{
    const struct box *box = &call->operand[2].box, *table = &call->operand[1].box;
    const struct view *x = &call->operand[0], *w = &call->operand[1], *y = &call->operand[2];
    int64_t seq = box_length(box, 1), hidden = box_length(box, 2);
    int64_t first = (box->low[1] - table->low[0]) * hidden;
    for (int64_t b = 0; b < box_length(box, 0); b++)
        for (int64_t i = 0; i < seq * hidden; i++)
            put(y, b * seq * hidden + i, false, get(x, b * seq * hidden + i) + get(w, first + i));
}

static void position_backward(const struct kernel_call *call)
{
    call_pass(call, 0);
    const struct box *box = &call->gradient[2].box, *table = &call->gradient[1].box;
    const struct view *dy = &call->gradient[2], *dw = &call->gradient[1];
    if (!dw->data)
        return;
    int64_t seq = box_length(box, 1), hidden = box_length(box, 2);
    int64_t first = (box->low[1] - table->low[0]) * hidden;
    for (int64_t i = 0; i < seq * hidden; i++) {
        double sum = 0;
        for (int64_t b = 0; b < box_length(box, 0); b++)
            sum += get(dy, b * seq * hidden + i);
        put(dw, first + i, true, sum);
    }
}

static const struct kernel plain_position = {"position", {{position_forward}, {position_backward}}};

/* rotary positions: (x, z) -> (x cos a - z sin a, x sin a + z cos a) for element i of the first
 * and of the second half of a head, where a = place * speed by the node's rotation
 * (common/graph/rotation.h). The last element of an odd width is unchanged. Backward rotates back.
 */

/* The vectors of all heads at one position: `count` elements from `first` on. */
struct rotary_run {
    int64_t first, count;
};

/* By what to rotate at one position; a negative place rotates back. */
struct rotary_angles {
    double place;
    const struct rotation *rotation;
};

static void rotary_turn_place(const struct view *x, const struct view *y, struct rotary_run run,
                              int64_t width, struct rotary_angles angles, bool add)
{
    int64_t half = width / 2;
    for (int64_t head = run.first; head < run.first + run.count; head += width) {
        for (int64_t i = 0; i < half; i++) {
            double angle = angles.place * rotation_speed(angles.rotation, i, width);
            double first = get(x, head + i), second = get(x, head + half + i);
            put(y, head + i, add, first * cos(angle) - second * sin(angle));
            put(y, head + half + i, add, first * sin(angle) + second * cos(angle));
        }
        if (width % 2)
            put(y, head + width - 1, add, get(x, head + width - 1));
    }
}

/* Dims are b, s, those of heads, d. */
static void rotary_turn(const struct view *from, const struct view *to, bool add, double sign,
                        const struct rotation *rotation)
{
    const struct box *box = &from->box;
    int64_t places = box_length(box, 1), width = box_length(box, box->dims - 1);
    int64_t count = 1;
    for (int i = 2; i < box->dims; i++)
        count *= box_length(box, i);
    for (int64_t b = 0; b < box_length(box, 0); b++)
        for (int64_t s = 0; s < places; s++) {
            int64_t at = (b * places + s) * count;
            rotary_turn_place(from, to, (struct rotary_run){at, count}, width,
                              (struct rotary_angles){sign * (double)(box->low[1] + s), rotation},
                              add);
        }
}

static void rotary_forward(const struct kernel_call *call)
{
    rotary_turn(&call->operand[0], &call->operand[1], false, 1, &call->node->rotation);
}

static void rotary_backward(const struct kernel_call *call)
{
    if (call->gradient[0].data)
        rotary_turn(&call->gradient[1], &call->gradient[0], call_accumulates(call, 0), -1,
                    &call->node->rotation);
}

static const struct kernel plain_rotary = {"rotary", {{rotary_forward}, {rotary_backward}}};

/* swiglu: y = x s(x) z, s(x) = 1 / (1 + exp(-x)): Shazeer, arXiv 2002.05202. */

enum { GATE, VALUE, GATED };

static void swiglu_forward(const struct kernel_call *call)
{
    const struct view *x = &call->operand[GATE], *z = &call->operand[VALUE],
                      *y = &call->operand[GATED];
    for (int64_t i = 0; i < box_count(&y->box); i++)
        put(y, i, false, get(x, i) / (1 + exp(-get(x, i))) * get(z, i));
}

/* dx = dy z s (1 + x (1 - s)), dz = dy x s. The gradient of x may share memory with that of y. */
static void swiglu_backward(const struct kernel_call *call)
{
    const struct view *dx = &call->gradient[GATE], *dz = &call->gradient[VALUE];
    for (int64_t i = 0; i < box_count(&call->gradient[GATED].box); i++) {
        double x = get(&call->operand[GATE], i), z = get(&call->operand[VALUE], i);
        double s = 1 / (1 + exp(-x)), given = get(&call->gradient[GATED], i);
        if (dz->data)
            put(dz, i, call_accumulates(call, VALUE), given * x * s);
        if (dx->data)
            put(dx, i, call_accumulates(call, GATE), given * z * s * (1 + x * (1 - s)));
    }
}

static const struct kernel plain_swiglu = {"swiglu", {{swiglu_forward}, {swiglu_backward}}};

/* ---- what is the same for any array ---- */

/* Copies a box from one piece of a tensor to another, a contiguous range at a time, and
 * element by element if the two have different elements. */
/* Where the element at `index` (coordinates of the whole tensor) lies in the piece. */
static int64_t copy_place(const struct box *box, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < box->dims; i++)
        at = at * box_length(box, i) + index[i] - box->low[i];
    return at;
}

/* The first dim from which on `part` is contiguous in both pieces. */
static int copy_run_dim(const struct box *a, const struct box *b, const struct box *part)
{
    int first = part->dims;
    while (first > 0) {
        first--;
        if (box_length(part, first) != box_length(a, first) ||
            box_length(part, first) != box_length(b, first))
            break;
    }
    return first;
}

void plain_copy_run(const struct view *destination, int64_t to, const struct view *source,
                    int64_t from, int64_t count)
{
    size_t size = element_size(source->element);
    if (source->element == destination->element)
        memcpy((char *)destination->data + (size_t)to * size,
               (const char *)source->data + (size_t)from * size, (size_t)count * size);
    else
        for (int64_t i = 0; i < count; i++)
            put(destination, to + i, false, get(source, from + i));
}

void plain_copy_runs(const struct view *destination, const struct view *source,
                     const struct box *part, copy_run_fn *copy_run)
{
    assert(destination->box.dims == part->dims && source->box.dims == part->dims);
    if (box_count(part) == 0)
        return;
    int run = copy_run_dim(&destination->box, &source->box, part);
    int64_t count = 1, index[DIMS_MAX];
    memcpy(index, part->low, sizeof index);
    for (int i = run; i < part->dims; i++)
        count *= box_length(part, i);
    for (;;) {
        copy_run(destination, copy_place(&destination->box, index), source,
                 copy_place(&source->box, index), count);
        int dim = run - 1;
        while (dim >= 0 && ++index[dim] == part->high[dim]) {
            index[dim] = part->low[dim];
            dim--;
        }
        if (dim < 0)
            return;
    }
}

static void plain_copy(const struct view *destination, const struct view *source,
                       const struct box *part)
{
    plain_copy_runs(destination, source, part, plain_copy_run);
}

static int plain_probe(struct error *err)
{
    (void)err;
    return 0;
}

static void plain_clear(void *data, size_t bytes)
{
    if (bytes > 0)
        memset(data, 0, bytes);
}

static void plain_add_views(const struct view *destination, const struct view *source)
{
    for (int64_t i = 0; i < box_count(&source->box); i++)
        put(destination, i, true, get(source, i));
}

static void plain_square_sum(const float *data, size_t count, float *sum)
{
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (double)data[i] * data[i];
    *sum += (float)squares;
}

/* Loshchilov and Hutter, arXiv 1711.05101, algorithm 2: decay is not part of the gradient. */
static void plain_update(const struct update_call *call)
{
    double correction1 = 1 - pow(call->beta1, (double)call->step);
    double correction2 = 1 - pow(call->beta2, (double)call->step);
    float scale;
    if (!call_update_scale(call, &scale))
        return;
    for (size_t i = 0; i < call->count; i++) {
        double gradient = (double)call->gradient[i] * scale;
        double first = call->beta1 * (double)call->first[i] + (1 - (double)call->beta1) * gradient;
        double second =
            call->beta2 * (double)call->second[i] + (1 - (double)call->beta2) * gradient * gradient;
        double move = first / correction1 / (sqrt(second / correction2) + call->epsilon);
        double parameter = call->parameter[i];
        call->first[i] = (float)first;
        call->second[i] = (float)second;
        call->parameter[i] = (float)(parameter - call->rate * (move + call->decay * parameter));
    }
}

static const struct kernel *const plain_kernels[] = {
    &plain_add,  &plain_attention, &plain_embed,   &plain_gelu,   &plain_linear, &plain_loss,
    &plain_norm, &plain_position,  &plain_rmsnorm, &plain_rotary, &plain_swiglu, NULL,
};

const struct device device_plain = {
    .name = "plain",
    .probe = plain_probe,
    .kernels = plain_kernels,
    .copy = plain_copy,
    .clear = plain_clear,
    .add = plain_add_views,
    .square_sum = plain_square_sum,
    .update = plain_update,
};
