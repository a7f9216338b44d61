/* context.c - context parallelism: the sequence is split throughout; attention gathers the keys and
 * values of all positions. */
#include "common/placement/role.h"

/* clang-format off */
static const struct role_cell cells[] = {
    {"embed", "s.>s"},
    {"position", "ss>s"},
    {"norm", "s..>s"},
    {"qkv", "s..>s"},
    {"core", "s..>s"},
    {"out", "s..>s"},
    {"add", "ss>s"},
    {"fc1", "s..>s"},
    {"gelu", "s>s"},
    {"fc2", "s..>s"},
    {"logits", "s.>s"},
    {"loss", "ss>+"},
    {NULL, NULL},
};
/* clang-format on */

const struct role role_context = {
    .name = "context",
    .short_name = "context",
    .order = 1,
    .order_seq = 0,
    .cells = cells,
};
