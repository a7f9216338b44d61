/* rmsnorm.c - root-mean-square normalisation over h (Zhang and Sennrich, arXiv 1910.07467):
 * y = x / sqrt(mean of x^2 + epsilon) * w.
 *
 * With h split, each rank sums the squares of its piece; backward needs the sum of dy w x. */
#include "common/graph/operation.h"

const struct operation operation_rmsnorm = {
    .name = "rmsnorm",
    .input_count = 1,
    .weight_count = 1,
    .dims = {"bsh", "h", "bsh"},
    .saved = 1 << 0 | 1 << 3, /* x, squares */
    .cheap = true,
    .exchange = 'h',
    .phases = {2, 2},
    .statistics = {{{"squares", "bs", 0, REDUCTION_SUM}}, {{"dot", "bs", 0, REDUCTION_SUM}}},
    .statistic_count = {1, 1},
    .flops = operation_pass_flops,
    .backward_flops = 2,
    .cells = {{"batch", "b.>b"},
              {"tensor", "..>."},
              {"tensor_seq", "s.>s"},
              {"ulysses", "s.>s"},
              {"context", "s.>s"},
              {"hidden", "hh>h"}},
};
