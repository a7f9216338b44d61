/* rmsnorm.c - root-mean-square normalisation over h (Zhang and Sennrich, arXiv 1910.07467):
 * y = x / sqrt(mean of x^2 + epsilon) * w.
 *
 * With h split, each rank sums the squares of its piece; backward needs the sum of dy w u, where u
 * is the normalised x.
 *
 * query_norm and key_norm normalise every head by itself, over d, with one weight shared by all
 * heads (Henry et al., arXiv 2010.04245; used by Qwen3). They are two operations because queries
 * and keys have different dims. */
#include "common/graph/operation.h"

/* Normalises over dim `last` of x; `before` are the dims in front of it. */
#define RMSNORM(called, before, last, splits)                                                      \
    .name = (called), .kernel = "rmsnorm", .input_count = 1, .weight_count = 1,                    \
    .dims = {before last, last, before last}, .saved = 1 << 0 | 1 << 3, /* x, squares */           \
        .cheap = true, .exchange = (splits), .phases = {2, 2},                                     \
    .statistics = {{{"squares", before, 0, REDUCTION_SUM}}, {{"dot", before, 0, REDUCTION_SUM}}},  \
    .statistic_count = {1, 1}, .flops = operation_pass_flops, .backward_flops = 2

const struct operation operation_rmsnorm = {
    RMSNORM("rmsnorm", "bs", "h", 'h'),
    .cells = {{"batch", "b.>b"},
              {"tensor", "..>."},
              {"tensor_seq", "s.>s"},
              {"ulysses", "s.>s"},
              {"context", "s.>s"},
              {"hidden", "hh>h"}},
};

#define NORM_OF_HEADS                                                                              \
    .like = "rmsnorm", .cells = {{"batch", "b.>b"},   {"tensor", "k.>k"},  {"tensor_seq", "k.>k"}, \
                                 {"ulysses", "s.>s"}, {"context", "s.>s"}, {"hidden", "k.>k"}}

const struct operation operation_query_norm = {
    RMSNORM("query_norm", "bskg", "d", 'd'),
    NORM_OF_HEADS,
};

const struct operation operation_key_norm = {
    RMSNORM("key_norm", "bsk", "d", 'd'),
    NORM_OF_HEADS,
};
