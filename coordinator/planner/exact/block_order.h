/* block_order.h - plans that differ only in which of equal blocks has which strategy.
 *
 * By the formula they take the same time. By simulation they do not: what is gathered before a
 * block's forward or reduced behind its backward hides behind the blocks around it, and at the ends
 * of a step there are none. */
#ifndef COORDINATOR_PLANNER_EXACT_BLOCK_ORDER_H
#define COORDINATOR_PLANNER_EXACT_BLOCK_ORDER_H

#include "common/plan/plan.h"

enum block_order { BLOCK_ORDER_RISING, BLOCK_ORDER_FALLING, BLOCK_ORDERS };

/* A copy in which equal blocks next to each other that have the same roles are sorted by what else
 * they do, the least first or the most; NULL: they are already. place: per block, equal for equal
 * ones. The caller's. */
struct plan *block_order_sort(const struct plan *plan, const int *place, enum block_order order);

#endif
