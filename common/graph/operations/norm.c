/* norm.c - layer normalisation over h: y = (x - mean) / sqrt(variance + epsilon) * w + b.
 *
 * With h split, each rank sums over its piece: first the elements, then the squared deviations from
 * the reduced mean. Backward needs the sums of dy w and of dy w u, where u is the normalised x.
 * Statistics hold plain sums over h, not yet divided by its size. */
#include "common/graph/operation.h"

const struct operation operation_norm = {
    .name = "norm",
    .input_count = 1,
    .weight_count = 2,
    .dims = {"bsh", "h", "h", "bsh"},
    .saved = 1 << 0 | 1 << 4 | 1 << 5, /* x, sum, squares */
    .cheap = true,
    .exchange = 'h',
    .phases = {3, 2},
    .statistics = {{{"sum", "bs", 0, REDUCTION_SUM}, {"squares", "bs", 1, REDUCTION_SUM}},
                   {{"dot_w", "bs", 0, REDUCTION_SUM}, {"dot_u", "bs", 0, REDUCTION_SUM}}},
    .statistic_count = {2, 2},
    .flops = operation_pass_flops,
    .backward_flops = 2,
};
