/* tensor.c - Megatron's tensor parallelism (arXiv 1909.08053): heads and ffn are split, the
 * residual stream is replicated. Every layer needs two all-reduces forward and two backward. The
 * embedding, the head and the loss are split along the vocabulary. */
#include "common/placement/role.h"

/* clang-format off */
static const struct role_cell cells[] = {
    {"embed", ".v>+"},
    {"position", "..>."},
    {"norm", "...>."},
    {"qkv", ".nn>n"},
    {"core", "nnn>n"},
    {"out", "nn.>+"},
    {"add", "..>."},
    {"fc1", ".ff>f"},
    {"gelu", "f>f"},
    {"fc2", "ff.>+"},
    {"logits", ".v>v"},
    {"loss", "v.>."},
    {NULL, NULL},
};
/* clang-format on */

const struct role role_tensor = {
    .name = "tensor",
    .short_name = "tp",
    .order = 2,
    .order_seq = 3,
    .cells = cells,
};
