/* operands.h - an operation's operands and, behind them, the statistics of a direction, by slots.
 */
#ifndef TESTS_WORKER_KERNELS_OPERANDS_H
#define TESTS_WORKER_KERNELS_OPERANDS_H

#include "common/graph/operation.h"

static inline int slot_count(const struct operation *operation, bool gradient)
{
    return operation_operands(operation) +
           operation->statistic_count[gradient ? BACKWARD : FORWARD];
}

static inline const char *slot_dims(const struct operation *operation, bool gradient, int slot)
{
    int count = operation_operands(operation);
    if (slot < count)
        return operation->dims[slot];
    return operation->statistics[gradient ? BACKWARD : FORWARD][slot - count].dims;
}

/* Whether it is there before the kernel runs. */
static inline bool slot_is_given(const struct operation *operation, bool gradient, int slot)
{
    int output = operation_output(operation);
    return gradient ? slot == output : slot < output;
}

#endif
