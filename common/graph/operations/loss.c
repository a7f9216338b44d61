/* loss.c - cross entropy of logits and targets, summed and divided by the step's number of targets.
 * Targets below 0 are ignored.
 *
 * With a split vocabulary, ranks first reduce the maximum of their logits, then the sum of
 * exponentials and the target's logit. The maximum is subtracted from all logits, so that no
 * exponential overflows. */
#include "common/graph/operation.h"

static double flops(const struct operation *operation, const struct box *operands)
{
    return 20 * operation_pass_flops(operation, operands);
}

/* Saved: logits, targets and the statistics "largest" and "exponentials". */
#define LOSS(operation_name, logits, rows)                                                         \
    .name = operation_name, .input_count = 2, .dims = {logits, rows, ""},                          \
    .saved = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4, .constant = 1 << 1, .is_loss = true,               \
    .exchange = 'v', .phases = {3, 1},                                                             \
    .statistics = {{{"largest", rows, 0, REDUCTION_MAX},                                           \
                    {"exponentials", rows, 1, REDUCTION_SUM},                                      \
                    {"target", rows, 1, REDUCTION_SUM}}},                                          \
    .statistic_count = {3, 0}, .flops = flops, .backward_flops = 1

/* One target per position. Its cells are in placement/roles/. */
const struct operation operation_loss = {LOSS("loss", "bsv", "bs")};

/* One target per sample. */
const struct operation operation_class_loss = {
    LOSS("class_loss", "bv", "b"),
    .planned = true,
    .cells = {{"batch", "bb>+"},
              {"tensor", "v.>."},
              {"tensor_seq", "v.>."},
              {"ulysses", "..>."},
              {"context", "..>."},
              {"hidden", "v.>."}},
};
