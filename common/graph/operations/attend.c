/* attend.c - attention in which every query sees every key: an encoder's (Devlin et al., arXiv
 * 1810.04805). Otherwise as core.c. */
#include "common/graph/operation.h"

/* Two products: 2 x 2 b n s s d. */
static double flops(const struct operation *operation, const struct box *operands)
{
    (void)operation;
    return 4.0 * (double)box_count(&operands[0]) * (double)box_length(&operands[1], 1);
}

/* One head's matrix of scores: forward needs it once, backward also its gradient. */
static uint64_t workspace(const struct box *operands, enum direction direction)
{
    uint64_t scores = (uint64_t)(box_length(&operands[0], 1) * box_length(&operands[1], 1));
    return scores * sizeof(float) * (direction == FORWARD ? 1 : 2);
}

const struct operation operation_attend = {
    .name = "attend",
    .input_count = 3,
    .dims = {"bsnd", "bsnd", "bsnd", "bsnd"},
    .saved = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4, /* q, k, v, y, logsum */
    .phases = {1, 1},
    .statistics = {{{"logsum", "bns", 0, REDUCTION_SUM}}},
    .statistic_count = {1, 0},
    .flops = flops,
    .backward_flops = 2.5,
    .workspace = workspace,
    .cells = {{"batch", "bbb>b"},
              {"tensor", "nnn>n"},
              {"tensor_seq", "nnn>n"},
              {"ulysses", "nnn>n"},
              {"context", "s..>s"},
              {"hidden", "nnn>n"}},
};
