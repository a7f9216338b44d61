/* hidden.c - the hidden width split: with batch or sequence axes beside it, a 2-D matrix
 * product whose outputs are finished by reduce-scatter. */
#include "common/placement/role.h"

/* clang-format off */
static const struct role_cell cells[] = {
    {"embed", ".h>h"},
    {"position", "hh>h"},
    {"norm", "hhh>h"},
    {"qkv", "hh.>+"},
    {"core", "nnn>n"},
    {"out", "nn.>+"},
    {"add", "hh>h"},
    {"fc1", "hh.>+"},
    {"gelu", "f>f"},
    {"fc2", "ff.>+"},
    {"logits", "hh>+"},
    {"loss", "v.>."},
    {NULL, NULL},
};
/* clang-format on */

const struct role role_hidden = {
    .name = "hidden",
    .short_name = "hidden",
    .order = 4,
    .order_seq = 4,
    .cells = cells,
};
