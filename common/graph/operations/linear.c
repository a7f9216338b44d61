/* linear.c - the matrix products of a GPT: y = x w + b. They are separate operations because roles
 * split each of them along a different dim; the splits are in placement/roles/. */
#include "common/graph/operations/product.h"

/* Used three times per layer, for q, k and v, with the same input. */
const struct operation operation_qkv = {PRODUCT_AND_BIAS("qkv", "bsh", "hnd", "nd", "bsnd")};
const struct operation operation_out = {PRODUCT_AND_BIAS("out", "bsnd", "ndh", "h", "bsh")};
const struct operation operation_fc1 = {PRODUCT_AND_BIAS("fc1", "bsh", "hf", "f", "bsf")};
const struct operation operation_fc2 = {PRODUCT_AND_BIAS("fc2", "bsf", "fh", "h", "bsh")};

/* The weight is (v, h) like the embedding table, so that the two can be tied. */
const struct operation operation_logits = {PRODUCT("logits", "bsh", "vh", "bsv")};
