/* attention.c - y = softmax(q k' / sqrt(d)) v, in three variants:
 *
 *   core     causal: a query sees the keys at its own and earlier positions;
 *   grouped  causal, with g query heads per key/value head (Ainslie et al., arXiv 2305.13245);
 *   attend   an encoder's: a query sees all keys (Devlin et al., arXiv 1810.04805).
 *
 * Positions are those of the whole sequence; the boxes of q and of k, v tell where a piece begins.
 * Forward saves the logarithm of each row's sum of exponentials, from which backward recomputes the
 * probabilities (FlashAttention, arXiv 2205.14135, algorithm 4). Grouped query heads are two dims,
 * k (key/value heads) and g (query heads of each), so that splitting by heads always means
 * splitting the same dim of q, k and v. */
#include "common/graph/operation.h"

/* Two matrix products of 2 b n s s d each: q k' and the probabilities times v. */
static double flops(const struct operation *operation, const struct box *operands)
{
    (void)operation;
    return 4.0 * (double)box_count(&operands[0]) * (double)box_length(&operands[1], 1);
}

/* Of the last piece of the queries, which sees most keys: where a sequence is split the others wait
 * for it. The whole sees half of all. */
static double causal_flops(const struct operation *operation, const struct box *operands)
{
    double queries = (double)box_length(&operands[0], 1),
           keys = (double)box_length(&operands[1], 1);
    return keys > 0 ? flops(operation, operands) * (1 - queries / keys / 2) : 0;
}

/* The score matrix of one head, s by s in f32; backward also needs its gradient. */
static uint64_t workspace(const struct box *operands, enum direction direction)
{
    uint64_t scores = (uint64_t)(box_length(&operands[0], 1) * box_length(&operands[1], 1));
    return scores * sizeof(float) * (direction == FORWARD ? 1 : 2);
}

/* Saved: q, k, v, y and the statistic "logsum". */
#define ATTENTION(operation_name, query, key, sums)                                                \
    .name = operation_name, .kernel = "attention", .input_count = 3,                               \
    .dims = {query, key, key, query}, .saved = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4,         \
    .phases = {1, 1}, .statistics = {{{"logsum", sums, 0, REDUCTION_SUM}}},                        \
    .statistic_count = {1, 0}, .backward_flops = 2.5, .workspace = workspace

/* Heads are independent of each other. With the sequence split (context), every piece of the
 * queries needs the keys and values of all positions. */
#define CELLS(heads)                                                                               \
    .cells = {{"batch", "bbb>b"},                                                                  \
              {"tensor", heads heads heads ">" heads},                                             \
              {"tensor_seq", heads heads heads ">" heads},                                         \
              {"ulysses", heads heads heads ">" heads},                                            \
              {"context", "s..>s"},                                                                \
              {"hidden", heads heads heads ">" heads}}

/* Its cells are in the files of the roles, placement/roles/. */
const struct operation operation_core = {
    ATTENTION("core", "bsnd", "bsnd", "bns"),
    .causal = true,
    .flops = causal_flops,
};

const struct operation operation_grouped = {
    ATTENTION("grouped", "bskgd", "bskd", "bkgs"),
    .causal = true,
    .flops = causal_flops,
    CELLS("k"),
};

const struct operation operation_attend = {
    ATTENTION("attend", "bsnd", "bsnd", "bns"),
    .flops = flops,
    CELLS("n"),
};
