/* batch.c - data parallelism: every rank has its own samples and all weights.
 *
 * Gradients of weights are partial sums; they are reduced once per step. */
#include "common/placement/role.h"

/* clang-format off */
static const struct role_cell cells[] = {
    {"embed", "b.>b"},
    {"position", "b.>b"},
    {"norm", "b..>b"},
    {"qkv", "b..>b"},
    {"core", "bbb>b"},
    {"out", "b..>b"},
    {"add", "bb>b"},
    {"fc1", "b..>b"},
    {"gelu", "b>b"},
    {"fc2", "b..>b"},
    {"logits", "b.>b"},
    {"loss", "bb>+"},
    {NULL, NULL},
};
/* clang-format on */

const struct role role_batch = {
    .name = "batch",
    .short_name = "dp",
    .order = 0,
    .order_seq = 0,
    .cells = cells,
};
