/* add.c - y = x + z: the residual connection. Both inputs' gradients are the gradient of y. */
#include "common/graph/operation.h"

const struct operation operation_add = {
    .name = "add",
    .input_count = 2,
    .dims = {"bsh", "bsh", "bsh"},
    .passes = 1 << 0 | 1 << 1,
    .phases = {1, 1},
    .flops = operation_pass_flops,
    .backward_flops = 0,
};
