/* grouped.c - causal attention in which g heads of queries share a head of keys and values
 * (Ainslie et al., arXiv 2305.13245): k counts the latter, so that one dim is split wherever heads
 * are. With g = 1 it is what core.c computes. */
#include "common/graph/operation.h"

/* Two products of the causal half: 2 x 2 b k g s s d / 2. */
static double flops(const struct operation *operation, const struct box *operands)
{
    (void)operation;
    return 2.0 * (double)box_count(&operands[0]) * (double)box_length(&operands[1], 1);
}

/* One head's matrix of scores: forward needs it once, backward also its gradient. */
static uint64_t workspace(const struct box *operands, enum direction direction)
{
    uint64_t scores = (uint64_t)(box_length(&operands[0], 1) * box_length(&operands[1], 1));
    return scores * sizeof(float) * (direction == FORWARD ? 1 : 2);
}

const struct operation operation_grouped = {
    .name = "grouped",
    .input_count = 3,
    .dims = {"bskgd", "bskd", "bskd", "bskgd"},
    .saved = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4, /* q, k, v, y, logsum */
    .phases = {1, 1},
    .statistics = {{{"logsum", "bkgs", 0, REDUCTION_SUM}}},
    .statistic_count = {1, 0},
    .flops = flops,
    .backward_flops = 2.5,
    .workspace = workspace,
    .cells = {{"batch", "bbb>b"},
              {"tensor", "kkk>k"},
              {"tensor_seq", "kkk>k"},
              {"ulysses", "kkk>k"},
              {"context", "s..>s"},
              {"hidden", "kkk>k"}},
};
