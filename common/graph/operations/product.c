/* product.c - the matrix products of LLaMA (Touvron et al., arXiv 2302.13971), y = x w, and those
 * of Qwen2 that add a bias (arXiv 2407.10671). Query heads are grouped by the key/value head they
 * share, see attention.c. */
#include "common/graph/operations/product.h"

/* From the residual stream into heads or into the MLP: tensor parallelism splits `own`, a dim that
 * only the output has. */
#define OUT_OF_STREAM(own)                                                                         \
    .cells = {{"batch", "b.>b"},   {"tensor", "." own ">" own}, {"tensor_seq", "." own ">" own},   \
              {"ulysses", "s.>s"}, {"context", "s.>s"},         {"hidden", "hh>+"}}

/* The same into heads, with a bias. */
#define INTO_HEADS                                                                                 \
    .cells = {{"batch", "b..>b"},   {"tensor", ".kk>k"},  {"tensor_seq", ".kk>k"},                 \
              {"ulysses", "s..>s"}, {"context", "s..>s"}, {"hidden", "hh.>+"}}

/* Back into the residual stream: `own` is contracted, so every rank ends with a partial sum. */
#define INTO_STREAM(own)                                                                           \
    .cells = {{"batch", "b.>b"},   {"tensor", own own ">+"}, {"tensor_seq", own own ">+"},         \
              {"ulysses", "s.>s"}, {"context", "s.>s"},      {"hidden", own own ">+"}}

const struct operation operation_query = {
    PRODUCT("query", "bsh", "hkgd", "bskgd"),
    OUT_OF_STREAM("k"),
};

/* Used for both keys and values. */
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
