/* linear.c - the matrix products of a GPT: y = x w + b. They are several operations because a role
 * splits each of them along another dim; how is in the roles' own files. */
#include "common/graph/operations/product.h"

/* q, k and v alike: three nodes that read the same input. */
const struct operation operation_qkv = {PRODUCT_AND_BIAS("qkv", "bsh", "hnd", "nd", "bsnd")};
const struct operation operation_out = {PRODUCT_AND_BIAS("out", "bsnd", "ndh", "h", "bsh")};
const struct operation operation_fc1 = {PRODUCT_AND_BIAS("fc1", "bsh", "hf", "f", "bsf")};
const struct operation operation_fc2 = {PRODUCT_AND_BIAS("fc2", "bsf", "fh", "h", "bsh")};

/* The weight lies as the embedding's (v, h), so that the two can be one tensor. */
const struct operation operation_logits = {PRODUCT("logits", "bsh", "vh", "bsv")};
