/* block_order.h - reorders strategies among equal blocks.
 *
 * By the formula the order makes no difference. In simulation it does: the gathering before a
 * block's forward and the reduction after its backward hide behind the neighbouring blocks, and at
 * either end of the step there are none. */
#ifndef COORDINATOR_PLANNER_EXACT_BLOCK_ORDER_H
#define COORDINATOR_PLANNER_EXACT_BLOCK_ORDER_H

#include "common/plan/plan.h"

enum block_order { BLOCK_ORDER_RISING, BLOCK_ORDER_FALLING, BLOCK_ORDERS };

/* A copy of the plan in which each run of adjacent equal blocks with the same stage and roles is
 * sorted by zero and then by recomputation, ascending or descending; NULL if it is sorted already.
 * place[b] is equal for equal blocks. The caller owns the copy. */
struct plan *block_order_sort(const struct plan *plan, const int *place, enum block_order order);

#endif
