/* position.c - y = x + w[s]: learned position embedding, one row of the table per position. */
#include "common/graph/operation.h"

const struct operation operation_position = {
    .name = "position",
    .input_count = 1,
    .weight_count = 1,
    .dims = {"bsh", "sh", "bsh"},
    .passes = 1 << 0,
    .phases = {1, 1},
    .flops = operation_pass_flops,
    .backward_flops = 1,
};
