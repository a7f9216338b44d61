/* memory_price.h - what a plan takes at least because memory is scarce: a Lagrangian bound.
 *
 * Every byte is given a price in seconds. Blocks that choose for themselves, time and priced bytes
 * together, less the price of all bytes there are, take no longer than any plan that fits; the
 * price is the one by which that is most. */
#ifndef COORDINATOR_PLANNER_EXACT_MEMORY_PRICE_H
#define COORDINATOR_PLANNER_EXACT_MEMORY_PRICE_H

#include <stdint.h>

struct instance;

struct memory_price {
    double per_second, per_once, per_byte; /* of T, of u, and of bytes: seconds of the step */
    double rest_s;                         /* what is not of blocks, less the price of all bytes */
    double *before; /* per block, and of the whole: the least of all before */
    double bound_s; /* of the whole step */
};

/* Of an instance whose choices have not been pruned; of a relaxed one, or where memory is no
 * object, the price is nothing. */
void memory_price_init(struct memory_price *price, const struct instance *instance);
void memory_price_finish(struct memory_price *price);
/* No plan is shorter in which the blocks [first, end) take this together: T, u and bytes. */
double memory_price_bound(const struct memory_price *price, int blocks, int first, int end,
                          double seconds, double once_s, uint64_t bytes);

#endif
