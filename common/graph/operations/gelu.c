/* gelu.c - GELU in the tanh approximation that GPT-2 uses:
 * y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
#include "common/graph/operation.h"

static double flops(const struct operation *operation, const struct box *operands)
{
    return 20 * operation_pass_flops(operation, operands);
}

const struct operation operation_gelu = {
    .name = "gelu",
    .input_count = 1,
    .dims = {"bsf", "bsf"},
    .saved = 1 << 0,
    .cheap = true,
    .phases = {1, 1},
    .flops = flops,
    .backward_flops = 1.5,
};
