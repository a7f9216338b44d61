/* tensor_seq.c - tensor parallelism with the residual stream split along the sequence
 * (Korthikanti et al., arXiv 2205.05198): all-gathers and reduce-scatters take the place of the
 * all-reduces of `tensor`. */
#include "common/placement/role.h"

/* clang-format off */
static const struct role_cell cells[] = {
    {"embed", ".v>+"},
    {"position", "ss>s"},
    {"norm", "s..>s"},
    {"qkv", ".nn>n"},
    {"core", "nnn>n"},
    {"out", "nn.>+"},
    {"add", "ss>s"},
    {"fc1", ".ff>f"},
    {"gelu", "f>f"},
    {"fc2", "ff.>+"},
    {"logits", ".v>v"},
    {"loss", "v.>."},
    {NULL, NULL},
};
/* clang-format on */

const struct role role_tensor_seq = {
    .name = "tensor_seq",
    .short_name = "tensor_seq",
    .order = 3,
    .order_seq = 2,
    .cells = cells,
};
