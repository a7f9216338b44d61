/* hidden.c - splits the residual stream along the hidden dim. Together with batch or sequence axes
 * this makes a 2-D matrix product whose partial outputs are completed by reduce-scatter. */
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
