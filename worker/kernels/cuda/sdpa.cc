/* sdpa.cc - the two graphs, operation by operation: FlashAttention, arXiv 2205.14135, algorithm 1
 * and appendix B.2, with the matrices of scores between operations only. */
#include "worker/kernels/cuda/sdpa.h"

namespace
{

/* A graph that grows, and the layouts of its tensors. */
struct builder {
    struct backend_graph graph;
    const struct sdpa_shape *s;

    /* (batch, seq, heads, width), as it lies, with the dims batch, heads, seq, width. */
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
    /* Scores of keys behind the query become nothing. */
    descriptor masked(descriptor a, descriptor nothing)
    {
        descriptor row = between(scores(), CUDNN_DATA_INT32);
        descriptor column = between(scores(), CUDNN_DATA_INT32);
        descriptor seen = between(scores(), CUDNN_DATA_BOOLEAN), out = between(scores());
        graph_index(&graph, 2, a, row);
        graph_index(&graph, 3, a, column);
        each(CUDNN_POINTWISE_CMP_GE, row, column, seen);
        graph_each(&graph, CUDNN_POINTWISE_BINARY_SELECT, a, nothing, seen, out);
        return out;
    }
    /* The gradient of k or v from a turned matrix of scores; heads that share one are summed. */
    void key_gradient(descriptor matrix, descriptor vectors_of, int64_t id)
    {
        descriptor out = bf16(id, keys());
        if (s->group == 1) {
            product(matrix, vectors_of, out);
            return;
        }
        int64_t head = s->seq * s->width;
        struct layout full = {{s->batch, s->heads(), s->seq, s->width},
                              {s->heads() * head, head, s->width, 1}};
        reduced(CUDNN_REDUCE_TENSOR_ADD,
                product(matrix, vectors_of, between(full, CUDNN_DATA_BFLOAT16)), out);
    }
};

/* The same memory with the last two dims in each other's place. */
struct layout turn(struct layout layout)
{
    return {{layout.dims[0], layout.dims[1], layout.dims[3], layout.dims[2]},
            {layout.apart[0], layout.apart[1], layout.apart[3], layout.apart[2]}};
}

/* A matrix of scores is seen with its rows as columns, in its own memory. */
struct layout across(struct layout layout)
{
    int64_t t = layout.dims[2];
    return {{layout.dims[0], layout.dims[1], t, t}, {layout.apart[0], layout.apart[1], 1, t}};
}

} // namespace

struct backend_graph sdpa_forward(const struct sdpa_shape *shape)
{
    struct builder b = {{}, shape};
    descriptor q = b.bf16(SDPA_Q, b.queries());
    descriptor k = b.bf16(SDPA_K, turn(b.keys()));
    descriptor v = b.bf16(SDPA_V, b.keys());
    descriptor y = b.bf16(SDPA_Y, b.queries());
    descriptor sums =
        graph_tensor(&b.graph, SDPA_SUMS, CUDNN_DATA_FLOAT, b.rows(shape->heads_apart()));
    descriptor scale = graph_number(&b.graph, SDPA_SCALE);
    descriptor nothing = graph_number(&b.graph, SDPA_NOTHING);
    descriptor raw = b.product(q, k, b.between(b.scores()));
    descriptor scaled = b.each(CUDNN_POINTWISE_MUL, raw, scale, b.between(b.scores()));
    descriptor scores = b.masked(scaled, nothing);
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

struct backend_graph sdpa_backward(const struct sdpa_shape *shape)
{
    struct builder b = {{}, shape};
    int64_t row = shape->heads() * shape->width, head = shape->seq * shape->width;
    struct layout given = {{shape->batch, shape->heads(), shape->seq, shape->width},
                           {row * shape->seq, head, row, 1}};
    descriptor q = b.bf16(SDPA_Q, b.queries());
    descriptor k = b.bf16(SDPA_K, turn(b.keys()));
    descriptor v = b.bf16(SDPA_V, turn(b.keys()));
    descriptor y = b.bf16(SDPA_Y, b.queries());
    descriptor dy = b.bf16(SDPA_DY, b.queries());
    descriptor sums =
        graph_tensor(&b.graph, SDPA_SUMS, CUDNN_DATA_FLOAT, b.rows(shape->heads_apart()));
    descriptor scale = graph_number(&b.graph, SDPA_SCALE);
    descriptor one = graph_number(&b.graph, SDPA_ONE);
    descriptor nothing = graph_number(&b.graph, SDPA_NOTHING);
    /* What a row's gradients have in common: dy y, summed. */
    descriptor both = b.each(CUDNN_POINTWISE_MUL, dy, y, b.between(given));
    descriptor mean = b.reduced(CUDNN_REDUCE_TENSOR_ADD, both, b.between(b.rows()));
    mean = b.each(CUDNN_POINTWISE_MUL, mean, one, b.between(b.rows()));
    descriptor raw = b.product(q, k, b.between(b.scores()));
    descriptor scaled = b.each(CUDNN_POINTWISE_MUL, raw, scale, b.between(b.scores()));
    descriptor less = b.each(CUDNN_POINTWISE_SUB, scaled, sums, b.between(b.scores()));
    descriptor scores = b.masked(less, nothing);
    descriptor p = b.each(CUDNN_POINTWISE_EXP, scores, nullptr, b.between(b.scores()));
    descriptor p_turned = b.turned(p, b.between(across(b.scores()), CUDNN_DATA_BFLOAT16));
    b.key_gradient(p_turned, dy, SDPA_DV);
    descriptor dp = b.product(dy, v, b.between(b.scores()));
    descriptor apart = b.each(CUDNN_POINTWISE_SUB, dp, mean, b.between(b.scores()));
    descriptor weighted = b.each(CUDNN_POINTWISE_MUL, apart, p, b.between(b.scores()));
    descriptor ds = b.each(CUDNN_POINTWISE_MUL, weighted, scale, b.between(b.scores()));
    descriptor ds_turned = b.turned(ds, b.between(across(b.scores()), CUDNN_DATA_BFLOAT16));
    b.key_gradient(ds_turned, q, SDPA_DK);
    descriptor rows_of_k = b.turned(k, b.between(b.keys(), CUDNN_DATA_BFLOAT16));
    b.product(ds, rows_of_k, b.bf16(SDPA_DQ, b.queries()));
    return b.graph;
}

int64_t sdpa_backward_bytes(const struct sdpa_shape *shape)
{
    int64_t heads = shape->batch * shape->heads();
    int64_t seq = (shape->seq + 127) / 128 * 128; /* the kernels' blocks */
    int64_t shared = shape->group > 1 ? 2 * heads * shape->seq * shape->width * 2 : 0;
    return heads * seq * seq * 2 + shared;
}

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
