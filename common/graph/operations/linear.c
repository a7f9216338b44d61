/* linear.c - the matrix products of a transformer: y = x w (+ bias).
 *
 * All are one kernel: it contracts the dims that x and w share and y lacks. They are five
 * operations because a role splits each of them along another dim. */
#include "common/graph/operation.h"

/* q, k and v alike: three nodes that read the same input. */
const struct operation operation_qkv = {
    .name = "qkv",
    .kernel = "linear",
    .input_count = 1,
    .weight_count = 2,
    .dims = {"bsh", "hnd", "nd", "bsnd"},
    .saved = 1 << 0,
    .once = 1 << 2,
    .phases = {1, 1},
    .flops = operation_matmul_flops,
    .backward_flops = 2,
};

const struct operation operation_out = {
    .name = "out",
    .kernel = "linear",
    .input_count = 1,
    .weight_count = 2,
    .dims = {"bsnd", "ndh", "h", "bsh"},
    .saved = 1 << 0,
    .once = 1 << 2,
    .phases = {1, 1},
    .flops = operation_matmul_flops,
    .backward_flops = 2,
};

const struct operation operation_fc1 = {
    .name = "fc1",
    .kernel = "linear",
    .input_count = 1,
    .weight_count = 2,
    .dims = {"bsh", "hf", "f", "bsf"},
    .saved = 1 << 0,
    .once = 1 << 2,
    .phases = {1, 1},
    .flops = operation_matmul_flops,
    .backward_flops = 2,
};

const struct operation operation_fc2 = {
    .name = "fc2",
    .kernel = "linear",
    .input_count = 1,
    .weight_count = 2,
    .dims = {"bsf", "fh", "h", "bsh"},
    .saved = 1 << 0,
    .once = 1 << 2,
    .phases = {1, 1},
    .flops = operation_matmul_flops,
    .backward_flops = 2,
};

/* The weight lies as the embedding's (v, h), so that the two can be one tensor. */
const struct operation operation_logits = {
    .name = "logits",
    .kernel = "linear",
    .input_count = 1,
    .weight_count = 1,
    .dims = {"bsh", "vh", "bsv"},
    .saved = 1 << 0,
    .phases = {1, 1},
    .flops = operation_matmul_flops,
    .backward_flops = 2,
};
