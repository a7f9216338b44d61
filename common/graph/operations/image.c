/* image.c - the first and last operations of a vision transformer (Dosovitskiy et al.,
 * arXiv 2010.11929): image patches are projected to the positions of a sequence; the mean over all
 * positions is classified. Its loss, class_loss, is in loss.c.
 *
 * Dims: p is the numbers in a patch, 3 x edge x edge; v the classes. */
#include "common/graph/operations/product.h"

const struct operation operation_patch = {
    .name = "patch",
    .kernel = "linear",
    .input_count = 1,
    .weight_count = 2,
    .dims = {"bsp", "ph", "h", "bsh"},
    .saved = 1 << 0,
    .constant = 1 << 0,
    .phases = {1, 1},
    .flops = operation_matmul_flops,
    .backward_flops = 1,
    .cells = {{"batch", "b..>b"},
              {"tensor", "...>."},
              {"tensor_seq", "s..>s"},
              {"ulysses", "s..>s"},
              {"context", "s..>s"},
              {"hidden", ".hh>h"}},
};

/* y = the mean of x over all positions. */
const struct operation operation_pool = {
    .name = "pool",
    .input_count = 1,
    .dims = {"bsh", "bh"},
    .planned = true,
    .phases = {1, 1},
    .flops = operation_pass_flops,
    .backward_flops = 1,
    .cells = {{"batch", "b>b"},
              {"tensor", ".>."},
              {"tensor_seq", "s>+"},
              {"ulysses", "s>+"},
              {"context", "s>+"},
              {"hidden", "h>h"}},
};

const struct operation operation_classify = {
    PRODUCT_AND_BIAS("classify", "bh", "hv", "v", "bv"),
    .cells = {{"batch", "b..>b"},
              {"tensor", ".vv>v"},
              {"tensor_seq", ".vv>v"},
              {"ulysses", "...>."},
              {"context", "...>."},
              {"hidden", "hh.>+"}},
};
