/* sdpa.cc - the graphs of forward and backward, operation by operation: FlashAttention, arXiv
 * 2205.14135, algorithm 1 and appendix B.2. Matrices of scores are intermediate results, without
 * memory. */
#include "worker/kernels/cuda/sdpa.h"

namespace
{

/* The memory layouts of a shape's tensors. */
struct layouts {
    const struct sdpa_shape *s;

    /* A tensor that lies in memory as (batch, seq, heads, width), with the dims in cuDNN's order:
     * batch, heads, seq, width. */
    struct layout vectors(int64_t heads, int64_t heads_apart) const
    {
        int64_t row = heads_apart * s->width;
        return {{s->batch, heads, s->seq, s->width}, {row * s->seq, s->width, row, 1}};
    }
    struct layout queries(void) const
    {
        return vectors(s->heads(), s->heads_apart());
    }
    struct layout keys(void) const
    {
        return vectors(s->key_heads, s->key_heads_apart);
    }
    struct layout scores(void) const
    {
        int64_t t = s->seq;
        return {{s->batch, s->heads(), t, t}, {s->heads() * t * t, t * t, t, 1}};
    }
    struct layout rows(int64_t heads_apart) const
    {
        return {{s->batch, s->heads(), s->seq, 1}, {heads_apart * s->seq, s->seq, 1, 1}};
    }
    struct layout rows(void) const
    {
        return rows(s->heads());
    }
};

/* The same memory with the last two dims swapped: the transpose. */
struct layout turn(struct layout layout)
{
    return {{layout.dims[0], layout.dims[1], layout.dims[3], layout.dims[2]},
            {layout.apart[0], layout.apart[1], layout.apart[3], layout.apart[2]}};
}

/* The layout of a matrix of scores, seen as its transpose. */
struct layout across(struct layout layout)
{
    int64_t t = layout.dims[2];
    return {{layout.dims[0], layout.dims[1], t, t}, {layout.apart[0], layout.apart[1], 1, t}};
}

/* A graph under construction. Functions that add an operation return its result. */
struct builder : layouts {
    struct cudnn_graph graph;

    descriptor between(struct layout layout, cudnnDataType_t type = CUDNN_DATA_FLOAT)
    {
        return graph_tensor(&graph, 0, type, layout);
    }
    descriptor bf16(int64_t id, struct layout layout)
    {
        return graph_tensor(&graph, id, CUDNN_DATA_BFLOAT16, layout);
    }
    descriptor product(descriptor a, descriptor b, descriptor out)
    {
        graph_multiply(&graph, a, b, out);
        return out;
    }
    descriptor each(cudnnPointwiseMode_t mode, descriptor a, descriptor b, descriptor out)
    {
        graph_each(&graph, mode, a, b, nullptr, out);
        return out;
    }
    descriptor reduced(cudnnReduceTensorOp_t how, descriptor a, descriptor out)
    {
        graph_reduce(&graph, how, a, out);
        return out;
    }
    descriptor turned(descriptor a, descriptor out)
    {
        graph_reshape(&graph, a, out);
        return out;
    }
};

/* For each row of scores the logarithm of the sum of exp(score). */
descriptor sums_of(struct builder *b)
{
    return graph_tensor(&b->graph, SDPA_SUMS, CUDNN_DATA_FLOAT, b->rows(b->s->heads_apart()));
}

descriptor scaled_scores(struct builder *b, descriptor q, descriptor k, descriptor scale)
{
    descriptor raw = b->product(q, k, b->between(b->scores()));
    return b->each(CUDNN_POINTWISE_MUL, raw, scale, b->between(b->scores()));
}

/* The causal mask: scores of keys after the query become SDPA_NOTHING, -infinity. */
descriptor masked(struct builder *b, descriptor a, descriptor nothing)
{
    descriptor row = b->between(b->scores(), CUDNN_DATA_INT32);
    descriptor column = b->between(b->scores(), CUDNN_DATA_INT32);
    descriptor seen = b->between(b->scores(), CUDNN_DATA_BOOLEAN), out = b->between(b->scores());
    graph_index(&b->graph, 2, a, row);
    graph_index(&b->graph, 3, a, column);
    b->each(CUDNN_POINTWISE_CMP_GE, row, column, seen);
    graph_each(&b->graph, CUDNN_POINTWISE_BINARY_SELECT, a, nothing, seen, out);
    return out;
}

/* The inputs of backward; k and v are transposed. */
struct operands {
    descriptor q, k, v, y, dy, sums, scale, one, nothing;
};

struct operands bring(struct builder *b)
{
    struct operands of;
    of.q = b->bf16(SDPA_Q, b->queries());
    of.k = b->bf16(SDPA_K, turn(b->keys()));
    of.v = b->bf16(SDPA_V, turn(b->keys()));
    of.y = b->bf16(SDPA_Y, b->queries());
    of.dy = b->bf16(SDPA_DY, b->queries());
    of.sums = sums_of(b);
    of.scale = graph_number(&b->graph, SDPA_SCALE);
    of.one = graph_number(&b->graph, SDPA_ONE);
    of.nothing = graph_number(&b->graph, SDPA_NOTHING);
    return of;
}

/* The mean of dP in each row, weighted with P: the sum of dy y. */
descriptor mean_of(struct builder *b, const struct operands *of)
{
    const struct sdpa_shape *s = b->s;
    int64_t row = s->heads() * s->width, head = s->seq * s->width;
    struct layout given = {{s->batch, s->heads(), s->seq, s->width}, {row * s->seq, head, row, 1}};
    descriptor both = b->each(CUDNN_POINTWISE_MUL, of->dy, of->y, b->between(given));
    descriptor mean = b->reduced(CUDNN_REDUCE_TENSOR_ADD, both, b->between(b->rows()));
    return b->each(CUDNN_POINTWISE_MUL, mean, of->one, b->between(b->rows()));
}

/* P once more, from the sums that forward stored: exp(score - sums). */
descriptor powers_again(struct builder *b, const struct operands *of)
{
    descriptor scaled = scaled_scores(b, of->q, of->k, of->scale);
    descriptor less = b->each(CUDNN_POINTWISE_SUB, scaled, of->sums, b->between(b->scores()));
    descriptor scores = masked(b, less, of->nothing);
    return b->each(CUDNN_POINTWISE_EXP, scores, nullptr, b->between(b->scores()));
}

/* dS = P (dy v - mean) scale. */
descriptor score_gradient(struct builder *b, const struct operands *of, descriptor p,
                          descriptor mean)
{
    descriptor dp = b->product(of->dy, of->v, b->between(b->scores()));
    descriptor apart = b->each(CUDNN_POINTWISE_SUB, dp, mean, b->between(b->scores()));
    descriptor weighted = b->each(CUDNN_POINTWISE_MUL, apart, p, b->between(b->scores()));
    return b->each(CUDNN_POINTWISE_MUL, weighted, of->scale, b->between(b->scores()));
}

/* The gradient of k or v: the transpose of a matrix of scores, times q or dy. Query heads that
 * share a head of keys are summed. */
void key_gradient(struct builder *b, descriptor scores, descriptor vectors_of, int64_t id)
{
    const struct sdpa_shape *s = b->s;
    descriptor matrix = b->turned(scores, b->between(across(b->scores()), CUDNN_DATA_BFLOAT16));
    descriptor out = b->bf16(id, b->keys());
    if (s->group == 1) {
        b->product(matrix, vectors_of, out);
        return;
    }
    int64_t head = s->seq * s->width;
    struct layout full = {{s->batch, s->heads(), s->seq, s->width},
                          {s->heads() * head, head, s->width, 1}};
    b->reduced(CUDNN_REDUCE_TENSOR_ADD,
               b->product(matrix, vectors_of, b->between(full, CUDNN_DATA_BFLOAT16)), out);
}

} // namespace

struct cudnn_graph sdpa_forward(const struct sdpa_shape *shape)
{
    struct builder b = {{shape}, {}};
    descriptor q = b.bf16(SDPA_Q, b.queries());
    descriptor k = b.bf16(SDPA_K, turn(b.keys()));
    descriptor v = b.bf16(SDPA_V, b.keys());
    descriptor y = b.bf16(SDPA_Y, b.queries());
    descriptor sums = sums_of(&b);
    descriptor scale = graph_number(&b.graph, SDPA_SCALE);
    descriptor nothing = graph_number(&b.graph, SDPA_NOTHING);
    descriptor scores = masked(&b, scaled_scores(&b, q, k, scale), nothing);
    descriptor largest = b.reduced(CUDNN_REDUCE_TENSOR_MAX, scores, b.between(b.rows()));
    descriptor less = b.each(CUDNN_POINTWISE_SUB, scores, largest, b.between(b.scores()));
    descriptor powers = b.each(CUDNN_POINTWISE_EXP, less, nullptr, b.between(b.scores()));
    descriptor sum = b.reduced(CUDNN_REDUCE_TENSOR_ADD, powers, b.between(b.rows()));
    descriptor log = b.each(CUDNN_POINTWISE_LOG, sum, nullptr, b.between(b.rows()));
    b.each(CUDNN_POINTWISE_ADD, largest, log, sums);
    descriptor p =
        b.each(CUDNN_POINTWISE_DIV, powers, sum, b.between(b.scores(), CUDNN_DATA_BFLOAT16));
    b.product(p, v, y);
    return b.graph;
}

struct cudnn_graph sdpa_backward(const struct sdpa_shape *shape)
{
    struct builder b = {{shape}, {}};
    struct operands of = bring(&b);
    descriptor mean = mean_of(&b, &of);
    descriptor p = powers_again(&b, &of);
    key_gradient(&b, p, of.dy, SDPA_DV);
    descriptor ds = score_gradient(&b, &of, p, mean);
    key_gradient(&b, ds, of.q, SDPA_DK);
    descriptor rows_of_k = b.turned(of.k, b.between(b.keys(), CUDNN_DATA_BFLOAT16));
    b.product(ds, rows_of_k, b.bf16(SDPA_DQ, b.queries()));
    return b.graph;
}

int64_t sdpa_backward_bytes(const struct sdpa_shape *shape)
{
    int64_t heads = shape->batch * shape->heads();
    int64_t seq = (shape->seq + 127) / 128 * 128; /* the kernels' block size */
    int64_t shared = shape->group > 1 ? 2 * heads * shape->seq * shape->width * 2 : 0;
    int64_t sums = heads * seq * (int64_t)sizeof(float) + 256; /* the means of rows */
    return heads * seq * seq * 2 + sums + shared;
}

/* The largest divisor of `whole` less than `below`. */
static int64_t next_divisor(int64_t whole, int64_t below)
{
    int64_t divisor = below - 1;
    while (whole % divisor)
        divisor--;
    return divisor;
}

bool sdpa_smaller(const struct sdpa_shape *whole, struct sdpa_shape *part)
{
    if (part->batch > 1)
        part->batch = next_divisor(whole->batch, part->batch);
    else if (part->key_heads > 1)
        part->key_heads = next_divisor(whole->key_heads, part->key_heads);
    else
        return false;
    return true;
}
