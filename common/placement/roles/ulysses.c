/* ulysses.c - the sequence is split, except in attention, where heads are (DeepSpeed-Ulysses, arXiv
 * 2309.14509): four all-to-alls forward per layer. */
#include "common/placement/role.h"

/* clang-format off */
static const struct role_cell cells[] = {
    {"embed", "s.>s"},
    {"position", "ss>s"},
    {"norm", "s..>s"},
    {"qkv", "s..>s"},
    {"core", "nnn>n"},
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

const struct role role_ulysses = {
    .name = "ulysses",
    .short_name = "ulysses",
    .order = 5,
    .order_seq = 1,
    .mirrored = true,
    .cells = cells,
};
