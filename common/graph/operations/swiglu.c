/* swiglu.c - SwiGLU: y = x / (1 + exp(-x)) z, where x is the gate (Shazeer, arXiv 2002.05202). */
#include "common/graph/operation.h"

static double flops(const struct operation *operation, const struct box *operands)
{
    return 15 * operation_pass_flops(operation, operands);
}

const struct operation operation_swiglu = {
    .name = "swiglu",
    .input_count = 2,
    .dims = {"bsf", "bsf", "bsf"},
    .saved = 1 << 0 | 1 << 1,
    .cheap = true,
    .phases = {1, 1},
    .flops = flops,
    .backward_flops = 1.5,
    .cells = {{"batch", "bb>b"},
              {"tensor", "ff>f"},
              {"tensor_seq", "ff>f"},
              {"ulysses", "ss>s"},
              {"context", "ss>s"},
              {"hidden", "ff>f"}},
};
