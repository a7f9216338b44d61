/* memory_price.h - a Lagrangian lower bound on plans that accounts for scarce memory.
 *
 * Every byte is given a price in seconds. If each block makes the choice with the least time plus
 * priced bytes, the sum less the price of all available bytes is a lower bound on every plan that
 * fits. The price used is the one that maximizes this bound. */
#ifndef COORDINATOR_PLANNER_EXACT_MEMORY_PRICE_H
#define COORDINATOR_PLANNER_EXACT_MEMORY_PRICE_H

#include <stdint.h>

struct instance;

struct memory_price {
    /* weights of T, of u, and of bytes, in seconds of the step */
    double per_second, per_once, per_byte;
    double rest_s;  /* parts that do not belong to blocks, less the price of all bytes */
    double *before; /* [block]: least of all blocks before it; [blocks]: of the whole model */
    double bound_s; /* of the whole step */
};

/* The instance's choices must not have been pruned. If it is relaxed, or memory is not scarce, the
 * price is zero. */
void memory_price_init(struct memory_price *price, const struct instance *instance);
void memory_price_finish(struct memory_price *price);
/* Lower bound on plans in which the blocks [first, end) together take T = seconds, u = once_s and
 * these bytes. */
double memory_price_bound(const struct memory_price *price, int blocks, int first, int end,
                          double seconds, double once_s, uint64_t bytes);

#endif
