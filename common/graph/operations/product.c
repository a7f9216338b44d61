/* product.c - matrix products without a bias, y = x w: those of LLaMA (Touvron et al., arXiv
 * 2302.13971). Heads of queries lie in groups, one for each head of keys and values: grouped.c. */
#include "common/graph/operation.h"

#define PRODUCT(operation_name, input, weight, output)                                             \
    .name = operation_name, .kernel = "linear", .input_count = 1, .weight_count = 1,               \
    .dims = {input, weight, output}, .saved = 1 << 0, .phases = {1, 1},                            \
    .flops = operation_matmul_flops, .backward_flops = 2

/* From the residual stream into heads, or into the network: the output's own dim is split. */
const struct operation operation_query = {
    PRODUCT("query", "bsh", "hkgd", "bskgd"),
    .cells = {{"batch", "b.>b"},
              {"tensor", ".k>k"},
              {"tensor_seq", ".k>k"},
              {"ulysses", "s.>s"},
              {"context", "s.>s"},
              {"hidden", "hh>+"}},
};

/* Keys and values alike. */
const struct operation operation_keyvalue = {
    PRODUCT("keyvalue", "bsh", "hkd", "bskd"),
    .cells = {{"batch", "b.>b"},
              {"tensor", ".k>k"},
              {"tensor_seq", ".k>k"},
              {"ulysses", "s.>s"},
              {"context", "s.>s"},
              {"hidden", "hh>+"}},
};

const struct operation operation_widen = {
    PRODUCT("widen", "bsh", "hf", "bsf"),
    .cells = {{"batch", "b.>b"},
              {"tensor", ".f>f"},
              {"tensor_seq", ".f>f"},
              {"ulysses", "s.>s"},
              {"context", "s.>s"},
              {"hidden", "hh>+"}},
};

/* And back: every rank holds a part of the sum. */
const struct operation operation_merge = {
    PRODUCT("merge", "bskgd", "kgdh", "bsh"),
    .cells = {{"batch", "b.>b"},
              {"tensor", "kk>+"},
              {"tensor_seq", "kk>+"},
              {"ulysses", "s.>s"},
              {"context", "s.>s"},
              {"hidden", "kk>+"}},
};

const struct operation operation_narrow = {
    PRODUCT("narrow", "bsf", "fh", "bsh"),
    .cells = {{"batch", "b.>b"},
              {"tensor", "ff>+"},
              {"tensor_seq", "ff>+"},
              {"ulysses", "s.>s"},
              {"context", "s.>s"},
              {"hidden", "ff>+"}},
};
