/* rotary.c - rotary position embedding (RoPE: Su et al., arXiv 2104.09864). In every head, element
 * i of the first half and element i of the second half form a pair that is rotated by position x
 * speed; the speeds follow from the node's rotation (graph/rotation.h). There are two operations
 * because queries and keys have different dims. */
#include "common/graph/operation.h"

static double flops(const struct operation *operation, const struct box *operands)
{
    return 3 * operation_pass_flops(operation, operands);
}

#define ROTARY_CELLS                                                                               \
    {                                                                                              \
        {"batch", "b>b"}, {"tensor", "k>k"}, {"tensor_seq", "k>k"}, {"ulysses", "s>s"},            \
            {"context", "s>s"}, {"hidden", "k>k"},                                                 \
    }

const struct operation operation_rotary = {
    .name = "rotary",
    .input_count = 1,
    .dims = {"bskgd", "bskgd"},
    .cheap = true,
    .phases = {1, 1},
    .flops = flops,
    .backward_flops = 1,
    .cells = ROTARY_CELLS,
};

const struct operation operation_rotary_key = {
    .name = "rotary_key",
    .kernel = "rotary",
    .input_count = 1,
    .dims = {"bskd", "bskd"},
    .cheap = true,
    .phases = {1, 1},
    .flops = flops,
    .backward_flops = 1,
    .cells = ROTARY_CELLS,
};
