/* product.c - the matrix products of LLaMA (Touvron et al., arXiv 2302.13971), y = x w, and those
 * of Qwen2 that have a bias (arXiv 2407.10671). Heads of queries lie in groups, one for each head
 * of keys and values: attention.c. */
#include "common/graph/operations/product.h"

/* From the residual stream into heads, or into the network: the output's own dim is split. */
#define OUT_OF_STREAM(own)                                                                         \
    .cells = {{"batch", "b.>b"},   {"tensor", "." own ">" own}, {"tensor_seq", "." own ">" own},   \
              {"ulysses", "s.>s"}, {"context", "s.>s"},         {"hidden", "hh>+"}}

/* Into heads, with a bias. */
#define INTO_HEADS                                                                                 \
    .cells = {{"batch", "b..>b"},   {"tensor", ".kk>k"},  {"tensor_seq", ".kk>k"},                 \
              {"ulysses", "s..>s"}, {"context", "s..>s"}, {"hidden", "hh.>+"}}

/* And back: every rank holds a part of the sum. */
#define INTO_STREAM(own)                                                                           \
    .cells = {{"batch", "b.>b"},   {"tensor", own own ">+"}, {"tensor_seq", own own ">+"},         \
              {"ulysses", "s.>s"}, {"context", "s.>s"},      {"hidden", own own ">+"}}

const struct operation operation_query = {
    PRODUCT("query", "bsh", "hkgd", "bskgd"),
    OUT_OF_STREAM("k"),
};

/* Keys and values alike. */
const struct operation operation_keyvalue = {
    PRODUCT("keyvalue", "bsh", "hkd", "bskd"),
    OUT_OF_STREAM("k"),
};

const struct operation operation_query_and_bias = {
    PRODUCT_AND_BIAS("query_and_bias", "bsh", "hkgd", "kgd", "bskgd"),
    .like = "query",
    INTO_HEADS,
};

const struct operation operation_keyvalue_and_bias = {
    PRODUCT_AND_BIAS("keyvalue_and_bias", "bsh", "hkd", "kd", "bskd"),
    .like = "keyvalue",
    INTO_HEADS,
};

const struct operation operation_widen = {
    PRODUCT("widen", "bsh", "hf", "bsf"),
    OUT_OF_STREAM("f"),
};

const struct operation operation_merge = {
    PRODUCT("merge", "bskgd", "kgdh", "bsh"),
    INTO_STREAM("k"),
};

const struct operation operation_narrow = {
    PRODUCT("narrow", "bsf", "fh", "bsh"),
    INTO_STREAM("f"),
};
