/* loss.c - cross entropy of the logits against targets, summed and divided by the step's count
 * of targets; a target below 0 is ignored.
 *
 * With the vocabulary split: the maximum first, then the sum of exponentials and the target's
 * logit, each from the ranks that hold the other pieces. Logits are taken less the maximum. */
#include "common/graph/operation.h"

static double flops(const struct operation *operation, const struct box *operands)
{
    return 20 * operation_pass_flops(operation, operands);
}

const struct operation operation_loss = {
    .name = "loss",
    .input_count = 2,
    .dims = {"bsv", "bs", ""},
    .saved = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4, /* logits, targets, largest, exponentials */
    .constant = 1 << 1,
    .is_loss = true,
    .exchange = 'v',
    .phases = {3, 1},
    .statistics = {{{"largest", "bs", 0, REDUCTION_MAX},
                    {"exponentials", "bs", 1, REDUCTION_SUM},
                    {"target", "bs", 1, REDUCTION_SUM}}},
    .statistic_count = {3, 0},
    .flops = flops,
    .backward_flops = 1,
};
